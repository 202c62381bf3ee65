import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;

/** Does what fills a broker's internal topics: groups of each kind, transactions, tiered segments. */
public class BrokerLogs {
    private static final String BYTES = "org.apache.kafka.common.serialization.ByteArray";
    private static final TopicPartition ORDERS = new TopicPartition("orders", 0);
    private static final Duration SOON = Duration.ofMillis(200);

    private static Properties client(String bootstrap, String... pairs) {
        Properties found = new Properties();
        found.put("bootstrap.servers", bootstrap);
        found.put("key.serializer", BYTES + "Serializer");
        found.put("value.serializer", BYTES + "Serializer");
        found.put("key.deserializer", BYTES + "Deserializer");
        found.put("value.deserializer", BYTES + "Deserializer");
        for (int i = 0; i < pairs.length; i += 2) found.put(pairs[i], pairs[i + 1]);
        return found;
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String... pairs) {
        Properties found = client(bootstrap, pairs);
        found.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(found);
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int number) {
        byte[] value = ("value " + number).getBytes();
        return new ProducerRecord<>(topic, 0, (byte[]) null, value, List.of(new RecordHeader("h", value)));
    }

    private static void read(Consumer<byte[], byte[]> consumer, int count) {
        for (int found = 0; found < count; ) found += consumer.poll(SOON).count();
        consumer.commitSync();
    }

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        try (Admin admin = Admin.create(client(bootstrap))) {
            Map<String, String> tiered = Map.of("remote.storage.enable", "true",
                "internal.segment.bytes", "200", "local.retention.bytes", "1", "retention.bytes", "1000");
            admin.createTopics(List.of(new NewTopic("orders", 2, (short) 1),
                new NewTopic("tiered", 1, (short) 1).configs(tiered))).all().get();
            ConfigResource shared = new ConfigResource(ConfigResource.Type.GROUP, "shared");
            admin.incrementalAlterConfigs(Map.of(shared, List.of(new AlterConfigOp(
                new ConfigEntry("share.auto.offset.reset", "earliest"),
                AlterConfigOp.OpType.SET)))).all().get();
            try (KafkaProducer<byte[], byte[]> plain = new KafkaProducer<>(client(bootstrap))) {
                for (int i = 0; i < 5; i++) plain.send(record("orders", i)).get();
                for (int i = 0; i < 12; i++) plain.send(record("tiered", i)).get();
            }
            try (KafkaConsumer<byte[], byte[]> classic = consumer(bootstrap,
                    "group.id", "classic", "group.instance.id", "one", "client.rack", "r1")) {
                classic.subscribe(List.of("orders"));
                read(classic, 5);
            }
            try (KafkaConsumer<byte[], byte[]> modern = consumer(bootstrap,
                    "group.id", "modern", "group.protocol", "consumer")) {
                modern.subscribe(new SubscriptionPattern("ord.*"));
                read(modern, 5);
            }
            try (KafkaProducer<byte[], byte[]> writer = new KafkaProducer<>(client(bootstrap,
                    "transactional.id", "transfer"));
                 KafkaConsumer<byte[], byte[]> classic = consumer(bootstrap,
                    "group.id", "transferred", "enable.auto.commit", "false")) {
                classic.subscribe(List.of("orders"));
                read(classic, 5);
                writer.initTransactions();
                for (boolean commits : new boolean[] {true, false}) {
                    writer.beginTransaction();
                    writer.send(record("orders", 9)).get();
                    writer.sendOffsetsToTransaction(
                        Map.of(ORDERS, new OffsetAndMetadata(3, "half")), classic.groupMetadata());
                    if (commits) writer.commitTransaction();
                    else writer.abortTransaction();
                }
            }
            try (KafkaShareConsumer<byte[], byte[]> shared1 = new KafkaShareConsumer<>(client(bootstrap,
                    "group.id", "shared"))) {
                shared1.subscribe(List.of("orders"));
                for (int found = 0; found < 5; ) {
                    ConsumerRecords<byte[], byte[]> some = shared1.poll(SOON);
                    found += some.count();
                    shared1.commitSync();
                }
            }
            admin.deleteConsumerGroupOffsets("modern", java.util.Set.of(ORDERS)).all().get();
            admin.deleteConsumerGroups(List.of("transferred")).all().get();
            TimeUnit.MILLISECONDS.sleep(Long.parseLong(args[1]));
            admin.deleteTopics(List.of("tiered")).all().get();
            TimeUnit.MILLISECONDS.sleep(Long.parseLong(args[1]));
        }
    }
}
