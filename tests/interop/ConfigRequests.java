import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.ConfigResource.Type;

/**
 * Creates topics through a broker, alters and describes configs at a controller, and prints what it is
 * answered. Arguments, for each cluster: address of the broker, address of the controller, id of the
 * controller. A line "next" stands after the answers of a cluster.
 */
public class ConfigRequests {
    static Admin broker;
    static Admin controller;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < args.length; i += 3) {
            ask(args[i], args[i + 1], args[i + 2]);
            System.out.println("next");
        }
    }

    static void ask(String brokerAddress, String controllerAddress, String id) throws Exception {
        broker = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, brokerAddress));
        controller = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_CONTROLLERS_CONFIG, controllerAddress));
        ConfigResource node = new ConfigResource(Type.BROKER, id);
        ConfigResource brokers = new ConfigResource(Type.BROKER, "");
        ConfigResource topic = new ConfigResource(Type.TOPIC, "orders");
        ConfigResource group = new ConfigResource(Type.GROUP, "workers");
        ConfigResource metrics = new ConfigResource(Type.CLIENT_METRICS, "all");
        ConfigResource loggers = new ConfigResource(Type.BROKER_LOGGER, id);

        create("orders", Map.of("segment.ms", " 70", "cleanup.policy", "compact"));
        create("internal", Map.of("internal.segment.bytes", "99"));
        create("unknown", Map.of("message.format.version", "2.8"));
        create("wrong", Map.of("max.compaction.lag.ms", "5", "min.compaction.lag.ms", "9"));
        create("remote", Map.of("remote.storage.enable", "true"));

        set(topic, "retention.ms", "123456");
        for (String pair : List.of("retention.ms=-2", "preallocate=1", "cleanup.policy=a,b", "foo=1",
            "min.cleanable.dirty.ratio=2", "min.cleanable.dirty.ratio=1e-5", "segment.bytes=14",
            "compression.gzip.level=0", "compression.gzip.level=9", "compression.type=none",
            "leader.replication.throttled.replicas=0:1, 2:3", "unclean.leader.election.enable=TRUE",
            "leader.replication.throttled.replicas=x", "cleanup.policy=,", "max.message.bytes=-1")) {
            int at = pair.indexOf('=');
            set(topic, pair.substring(0, at), pair.substring(at + 1));
        }
        alter(topic, OpType.APPEND, "cleanup.policy", "delete,compact");
        alter(topic, OpType.SUBTRACT, "cleanup.policy", "compact");
        alter(topic, OpType.APPEND, "retention.ms", "1");
        alter(topic, OpType.DELETE, "segment.bytes", "");
        set(new ConfigResource(Type.TOPIC, "missing"), "retention.ms", "1");
        set(new ConfigResource(Type.TOPIC, "a b"), "retention.ms", "1");
        set(new ConfigResource(Type.TOPIC, ""), "retention.ms", "1");
        set(brokers, "background.threads", "12");
        set(brokers, "log.segment.bytes", "3000000");
        set(brokers, "log.roll.ms", "8000000");
        alter(brokers, OpType.APPEND, "log.cleanup.policy", "compact");
        alter(brokers, OpType.APPEND, "background.threads", "12");
        set(node, "log.flush.interval.ms", "77777");
        set(node, "cordoned.log.dirs", "/a");
        set(group, "consumer.session.timeout.ms", "50000");
        set(group, "consumer.session.timeout.ms", "1");
        set(group, "share.auto.offset.reset", "by_duration:PT1H");
        set(group, "share.auto.offset.reset", "by_duration:1h");
        set(group, "streams.num.standby.replicas", "3");
        set(group, "foo", "1");
        set(new ConfigResource(Type.GROUP, ""), "consumer.session.timeout.ms", "50000");
        set(metrics, "interval.ms", "99");
        set(metrics, "match", "client_id=[");
        set(metrics, "match", "client_id=a.*,client_source_port=1");
        set(metrics, "foo", "1");
        alter(metrics, OpType.APPEND, "metrics", "a");
        set(loggers, "root", "BOGUS");
        alter(loggers, OpType.DELETE, "root", "");
        alter(loggers, OpType.APPEND, "root", "INFO");

        // A node describes what it has applied: wait for the last change, of each kind.
        set(group, "consumer.heartbeat.interval.ms", "5001");
        waitFor(group, "consumer.heartbeat.interval.ms", "5001");
        set(node, "num.io.threads", "9");
        waitFor(node, "num.io.threads", "9");
        for (ConfigResource resource : List.of(topic, brokers, node, group, metrics)) {
            describe(resource);
        }
        for (ConfigResource resource : List.of(new ConfigResource(Type.TOPIC, "missing"),
            new ConfigResource(Type.TOPIC, "a b"), new ConfigResource(Type.GROUP, ""),
            new ConfigResource(Type.CLIENT_METRICS, ""))) {
            describe(resource);
        }
        broker.close();
        controller.close();
    }

    static void create(String name, Map<String, String> configs) throws Exception {
        NewTopic topic = new NewTopic(name, Optional.of(1), Optional.empty()).configs(configs);
        CreateTopicsResult result = broker.createTopics(List.of(topic));
        try {
            print("create " + name, result.config(name).get().entries());
        } catch (ExecutionException e) {
            System.out.println("create " + name + " " + configs + ": " + problem(e));
        }
    }

    static void set(ConfigResource resource, String name, String value) throws Exception {
        alter(resource, OpType.SET, name, value);
    }

    static void alter(ConfigResource resource, OpType op, String name, String value) throws Exception {
        String label = op + " " + resource + " " + name + "=" + value;
        try {
            AlterConfigOp change = new AlterConfigOp(new ConfigEntry(name, value), op);
            controller.incrementalAlterConfigs(Map.of(resource, List.of(change)), new AlterConfigsOptions())
                .all().get();
            System.out.println(label + ": done");
        } catch (ExecutionException e) {
            System.out.println(label + ": " + problem(e));
        }
    }

    static String problem(ExecutionException e) {
        return e.getCause().getClass().getSimpleName() + ": " + e.getCause().getMessage();
    }

    static Collection<ConfigEntry> entries(ConfigResource resource) throws Exception {
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true);
        return controller.describeConfigs(List.of(resource), options).all().get().get(resource).entries();
    }

    static void waitFor(ConfigResource resource, String name, String value) throws Exception {
        while (entries(resource).stream()
            .noneMatch(entry -> entry.name().equals(name) && value.equals(entry.value()))) {
            Thread.sleep(20);
        }
    }

    static void describe(ConfigResource resource) throws Exception {
        try {
            print("describe " + resource, entries(resource));
        } catch (ExecutionException e) {
            System.out.println("describe " + resource + ": " + problem(e));
        }
    }

    static void print(String label, Collection<ConfigEntry> entries) {
        entries.stream().sorted(Comparator.comparing(ConfigEntry::name)).forEach(entry ->
            System.out.println(String.join("\t", label, entry.name(), String.valueOf(entry.value()),
                entry.source().toString(), String.valueOf(entry.type()),
                entry.isSensitive() ? "sensitive" : "", entry.isReadOnly() ? "read-only" : "",
                entry.synonyms().stream().map(one -> one.name() + "=" + one.value() + "@" + one.source())
                    .collect(Collectors.joining(" ")))));
    }
}
