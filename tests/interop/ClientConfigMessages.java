import java.io.FileInputStream;
import java.util.Properties;
import org.apache.kafka.clients.admin.AdminClientConfig;

/** For each properties file: what Kafka's admin client says of it, one line each. */
public class ClientConfigMessages {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties properties = new Properties();
            properties.put("bootstrap.controllers", "localhost:1");
            try (FileInputStream in = new FileInputStream(file)) {
                properties.load(in);
            }
            try {
                new AdminClientConfig(properties);
                System.out.println("accepted");
            } catch (Exception e) {
                System.out.println(e.getMessage().replace('\n', ' '));
            }
        }
    }
}
