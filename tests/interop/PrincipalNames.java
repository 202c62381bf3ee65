import java.io.DataInputStream;
import java.nio.charset.StandardCharsets;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Reads subjects in DER, each with mapping rules, from stdin; prints in a line each the name of X500Principal and what
 * the rules make of it, as hex of UTF-16. "-": refused.
 */
public class PrincipalNames {
    public static void main(String[] arguments) throws Exception {
        DataInputStream input = new DataInputStream(System.in);
        StringBuilder out = new StringBuilder();
        for (int left = input.readInt(); left > 0; left--) {
            byte[] subject = input.readNBytes(input.readInt());
            String rules = new String(input.readNBytes(input.readInt()), StandardCharsets.UTF_8);
            String name = null;
            String mapped = null;
            try {
                name = new X500Principal(subject).getName();
                mapped = SslPrincipalMapper.fromRules(rules).getName(name);
            } catch (Exception refused) {
                // What is null was refused.
            }
            out.append(hex(name)).append(' ').append(hex(mapped)).append('\n');
        }
        System.out.print(out);
    }

    private static String hex(String text) {
        if (text == null)
            return "-";
        StringBuilder hex = new StringBuilder("=");
        text.chars().forEach(unit -> hex.append(String.format("%04x", unit)));
        return hex.toString();
    }
}
