import java.io.FileInputStream;
import java.util.Properties;
import kafka.server.KafkaConfig;

/** For each properties file: what Kafka's own configuration class says of it, one line each. */
public class ConfigMessages {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties properties = new Properties();
            try (FileInputStream in = new FileInputStream(file)) {
                properties.load(in);
            }
            try {
                new KafkaConfig(properties, false);
                System.out.println("accepted");
            } catch (Exception e) {
                System.out.println(e.getMessage().replace('\n', ' '));
            }
        }
    }
}
