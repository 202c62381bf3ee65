package kafka.server;

import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.publisher.ControllerRegistrationsPublisher;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.raft.KafkaRaftClient;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;

import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;

import org.mockito.Mockito;
import org.opentest4j.TestAbortedException;
import org.slf4j.LoggerFactory;

import java.io.File;
import java.io.IOException;
import java.io.Writer;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Runs the controller of a Kafka test as a process of its own. It stands before Kafka's class of this name on the class
 * path. Brokers, clients and tests are Kafka's, unchanged.
 *
 * The system property "controller.command" is the command that runs a controller; the properties file that Kafka's harness
 * made is its last argument. A test with brokers and controllers in one process is aborted.
 */
public class ControllerServer {
    private static final List<String> COMMAND = List.of(System.getProperty("controller.command").split("\\s+"));
    private static final Duration START_TIMEOUT = Duration.ofSeconds(60);

    private final SharedServer shared;
    private final CompletableFuture<Integer> firstPort = new CompletableFuture<>();
    private final Map<String, Integer> ports = new LinkedHashMap<>();
    private static final Map<ControllerServer, Integer> METRICS = new ConcurrentHashMap<>();
    private static final List<MetricName> METERS = List.of(
        meterName("UncleanLeaderElectionsPerSec"), meterName("ElectionFromEligibleLeaderReplicasPerSec"));
    private final Plugin<Authorizer> authorizer =
        Plugin.wrapInstance(new RemoteAuthorizer(this::admin, this::image), null, "authorizer.class.name");
    private Properties properties;
    private Process process;
    private Admin admin;

    public ControllerServer(SharedServer shared, KafkaConfigSchema schema, BootstrapMetadata bootstrap) {
        this.shared = shared;
        LoggerFactory.getLogger(ControllerServer.class);  // tests look for it among the loggers of their JVM
        if (config().processRoles().size() > 1)
            throw new TestAbortedException("brokers and controllers in one process are not for other controllers");
    }

    public SharedServer sharedServer() {
        return shared;
    }

    public KafkaConfig config() {
        return shared.controllerConfig();
    }

    public String clusterId() {
        return shared.clusterId();
    }

    public Metrics metrics() {
        return shared.metrics();
    }

    public CompletableFuture<Integer> socketServerFirstBoundPortFuture() {
        return firstPort;
    }

    public scala.Option<Plugin<Authorizer>> authorizerPlugin() {
        String name = config().originals().get("authorizer.class.name") instanceof String text ? text : "";
        return name.isEmpty() ? scala.Option.empty() : scala.Option.apply(authorizer);
    }

    public void startup() {
        try {
            findPorts();
            Path directory = Files.createTempDirectory("controller-" + config().nodeId() + "-");
            Path file = directory.resolve("controller.properties");
            properties = properties();
            try (Writer writer = Files.newBufferedWriter(file)) {
                properties.store(writer, null);
            }
            start(file, directory.resolve("controller.log").toFile());
            showMeters();
            if (COMMAND.contains("quorate") && JavaClasses.deniesCredentials(config().originals()))
                denyCredentials();
            firstPort.complete(port());
        } catch (Exception error) {
            firstPort.completeExceptionally(error);
            throw error instanceof RuntimeException known ? known : new RuntimeException(error);
        }
    }

    /** A new controller refuses clients until the bootstrap records are committed. */
    private void denyCredentials() throws Exception {
        long end = System.nanoTime() + START_TIMEOUT.toNanos();
        while (true) {
            try {
                admin().createAcls(List.of(JavaClasses.DENIED_CREDENTIALS)).all().get(15, TimeUnit.SECONDS);
                return;
            } catch (ExecutionException error) {
                if (!(error.getCause() instanceof UnsupportedVersionException) || System.nanoTime() > end)
                    throw error;
                Thread.sleep(10);
            }
        }
    }

    /** Kafka's harness keeps the ports open until the server takes them over. */
    private void findPorts() throws IOException {
        for (var endpoint : scala.jdk.javaapi.CollectionConverters.asJava(config().controllerListeners())) {
            var address = new InetSocketAddress("localhost", endpoint.port());
            try (var channel = shared.socketFactory().openServerSocket(endpoint.listener(), address, 65536, 50)) {
                ports.put(endpoint.listener(), channel.socket().getLocalPort());
            }
        }
    }

    private int port() {
        return ports.values().iterator().next();
    }

    private Properties properties() {
        Properties found = new Properties();
        config().originals().forEach((key, value) -> found.setProperty(key, text(value)));
        found.setProperty("listeners", ports.entrySet().stream()
            .map(entry -> entry.getKey() + "://localhost:" + entry.getValue()).collect(Collectors.joining(",")));
        if (!found.containsKey("log.dirs") && !found.containsKey("log.dir"))
            found.setProperty("log.dirs", config().metadataLogDir());  // all that the Scala harness has formatted
        ports.keySet().forEach(listener -> StaticLogins.add(found, listener));
        String voters = found.getProperty("controller.quorum.voters");
        if (voters != null && voters.endsWith(":0"))
            found.setProperty("controller.quorum.voters", voters.substring(0, voters.length() - 1) + port());
        try (ServerSocket free = new ServerSocket(0)) {
            METRICS.put(this, free.getLocalPort());
            found.setProperty("quorate.metrics.listener", "127.0.0.1:" + free.getLocalPort());
            if (COMMAND.contains("quorate"))
                JavaClasses.replace(found);
        } catch (IOException | ClassNotFoundException error) {
            throw new RuntimeException(error);
        }
        return found;
    }

    private static MetricName meterName(String name) {
        return new MetricName("kafka.controller", "ControllerStats", name, null,
            "kafka.controller:type=ControllerStats,name=" + name);
    }

    /** Tests read these meters in their own JVM: they ask the controllers for the count. Java ones have no such page. */
    @SuppressWarnings("unchecked")
    private static void showMeters() {
        if (!COMMAND.contains("quorate"))
            return;
        try {
            Field field = MetricsRegistry.class.getDeclaredField("metrics");
            field.setAccessible(true);
            var metrics = (Map<MetricName, Metric>) field.get(KafkaYammerMetrics.defaultRegistry());
            for (MetricName name : METERS) {
                Meter meter = Mockito.mock(Meter.class);
                Mockito.when(meter.count()).thenAnswer(call -> count(name.getName()));
                metrics.put(name, meter);
            }
        } catch (ReflectiveOperationException error) {
            throw new RuntimeException(error);
        }
    }

    /** A meter of one JVM counts what each of its controllers sees. */
    private static long count(String name) throws IOException {
        String shown = "kafka_controller_controller_stats_"
            + name.replace("PerSec", "Total").replaceAll("(?<=[a-z])(?=[A-Z])", "_").toLowerCase(Locale.ROOT) + " ";
        long total = 0;
        for (int port : METRICS.values()) {
            var connection = URI.create("http://127.0.0.1:" + port + "/metrics").toURL().openConnection();
            connection.setRequestProperty("Connection", "close");  // a kept connection has a thread, which tests forbid
            try (var page = connection.getInputStream()) {
                total += new String(page.readAllBytes(), StandardCharsets.UTF_8).lines()
                    .filter(line -> line.startsWith(shown))
                    .mapToLong(line -> (long) Double.parseDouble(line.substring(shown.length()))).sum();
            }
        }
        return total;
    }

    private static String text(Object value) {
        if (value instanceof Collection<?> values) {
            StringJoiner joiner = new StringJoiner(",");
            values.forEach(one -> joiner.add(text(one)));
            return joiner.toString();
        }
        if (value instanceof Password secret)
            return secret.value();
        return value instanceof Class<?> type ? type.getName() : String.valueOf(value);
    }

    private void start(Path properties, File log) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(COMMAND);
        command.add(properties.toString());
        process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log).start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        long end = System.nanoTime() + START_TIMEOUT.toNanos();
        while (!listens()) {
            if (!process.isAlive())
                throw new IllegalStateException("the controller exited with " + process.exitValue() + ": "
                    + Files.readString(log.toPath()));
            if (System.nanoTime() > end)
                throw new IllegalStateException("the controller does not listen: " + log);
            Thread.sleep(10);
        }
    }

    private boolean listens() {
        try (Socket socket = new Socket("localhost", port())) {
            return socket.isConnected();
        } catch (IOException error) {
            return false;
        }
    }

    private synchronized Admin admin() {
        if (admin == null) {
            Map<String, Object> config = StaticLogins.client(properties, ports.keySet().iterator().next());
            config.putAll(Map.of("bootstrap.controllers", "localhost:" + port(), "request.timeout.ms", "5000",
                "default.api.timeout.ms", "10000"));
            admin = Admin.create(config);
        }
        return admin;
    }

    private QuorumInfo quorum() {
        try {
            return admin().describeMetadataQuorum().quorumInfo().get(15, TimeUnit.SECONDS);
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    private LeaderAndEpoch leaderAndEpoch() {
        QuorumInfo found = quorum();
        return new LeaderAndEpoch(OptionalInt.of(found.leaderId()), (int) found.leaderEpoch());
    }

    private MetadataImage image() {
        return MetadataLog.image(config().metadataLogDir());
    }

    private CompletableFuture<Map<String, ResultOrError<Uuid>>> topicIds(Collection<String> names) {
        Map<String, Uuid> known = image().topics().topicNameToIdView();
        Map<String, ResultOrError<Uuid>> found = new HashMap<>();
        names.forEach(name -> found.put(name, known.containsKey(name) ? new ResultOrError<>(known.get(name))
            : new ResultOrError<>(new ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION))));
        return CompletableFuture.completedFuture(found);
    }

    public SocketServer socketServer() {
        SocketServer server = Mockito.mock(SocketServer.class);
        Mockito.when(server.boundPort(Mockito.any()))
            .thenAnswer(call -> ports.get(((ListenerName) call.getArgument(0)).value()));
        Mockito.when(server.config()).thenReturn(config());
        return server;
    }

    @SuppressWarnings("unchecked")
    public KafkaRaftManager<ApiMessageAndVersion> raftManager() {
        RaftLog log = Mockito.mock(RaftLog.class);
        Mockito.when(log.endOffset()).thenAnswer(call -> new LogOffsetMetadata(quorum().highWatermark()));
        KafkaRaftManager<ApiMessageAndVersion> manager = Mockito.mock(KafkaRaftManager.class);
        Mockito.when(manager.raftLog()).thenReturn(log);
        KafkaRaftClient<ApiMessageAndVersion> client = Mockito.mock(KafkaRaftClient.class);
        Mockito.when(client.leaderAndEpoch()).thenAnswer(call -> leaderAndEpoch());
        Mockito.when(manager.client()).thenReturn(client);
        return manager;
    }

    public ControllerRegistrationsPublisher registrationsPublisher() {
        ControllerRegistrationsPublisher publisher = Mockito.mock(ControllerRegistrationsPublisher.class);
        Mockito.when(publisher.controllers()).thenAnswer(call -> image().cluster().controllers());
        return publisher;
    }

    public QuotaFactory.QuotaManagers quotaManagers() {
        return RemoteSettings.quotas(this::image);
    }

    /** What tests ask beside this needs the controller's own process. */
    @SuppressWarnings("unchecked")
    public Controller controller() {
        Class<?>[] types = {Controller.class};
        return (Controller) Proxy.newProxyInstance(Controller.class.getClassLoader(), types, (proxy, method, arguments) ->
            switch (method.getName()) {
                case "findTopicIds" -> topicIds((Collection<String>) arguments[1]);
                case "findAllTopicIds" -> CompletableFuture.completedFuture(image().topics().topicNameToIdView());
                case "incrementalAlterConfigs" -> RemoteSettings.alter(admin(),
                    (Map<ConfigResource, Map<String, Map.Entry<AlterConfigOp.OpType, String>>>) arguments[1]);
                case "registerBroker" -> RemoteSettings.register(port(), (BrokerRegistrationRequestData) arguments[1]);
                case "isActive" -> quorum().leaderId() == config().nodeId();
                case "waitForReadyBrokers" -> CompletableFuture.completedFuture(null);
                case "close", "beginShutdown" -> null;
                default -> throw new UnsupportedOperationException(method.getName() + " needs the controller's process");
            });
    }

    public void shutdown() {
        METRICS.remove(this);
        if (METRICS.isEmpty())
            METERS.forEach(KafkaYammerMetrics.defaultRegistry()::removeMetric);
        if (admin != null)
            admin.close(Duration.ofMillis(100));
        if (process == null)
            return;
        process.destroy();
        try {
            if (!process.waitFor(10, TimeUnit.SECONDS))
                process.destroyForcibly().waitFor();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    public void awaitShutdown() {
        try {
            process.waitFor();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
