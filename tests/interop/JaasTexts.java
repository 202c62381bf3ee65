import java.io.DataInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;

/**
 * Reads texts of sasl.jaas.config from stdin; prints in a line each the login module, its flag and its options, sorted,
 * as hex of UTF-16. "-": refused.
 */
public class JaasTexts {
    public static void main(String[] arguments) throws Exception {
        DataInputStream input = new DataInputStream(System.in);
        StringBuilder out = new StringBuilder();
        for (int left = input.readInt(); left > 0; left--) {
            String text = new String(input.readNBytes(input.readInt()), StandardCharsets.UTF_8);
            try {
                Map<String, Object> configs = Map.of(SaslConfigs.SASL_JAAS_CONFIG, new Password(text));
                AppConfigurationEntry entry = JaasContext.loadClientContext(configs).configurationEntries().get(0);
                StringBuilder found = new StringBuilder(hex(entry.getLoginModuleName()));
                found.append(' ').append(hex(entry.getControlFlag().toString()));
                // A name that is null is refused here, too: no login module can ask for it.
                Map<String, Object> options = new TreeMap<>(entry.getOptions());
                options.forEach((key, value) -> found.append(' ').append(hex(key)).append(' ').append(hex((String) value)));
                out.append(found);
            } catch (Exception refused) {
                out.append('-');
            }
            out.append('\n');
        }
        System.out.print(out);
    }

    private static String hex(String text) {
        StringBuilder hex = new StringBuilder("=");
        text.chars().forEach(unit -> hex.append(String.format("%04x", unit)));
        return hex.toString();
    }
}
