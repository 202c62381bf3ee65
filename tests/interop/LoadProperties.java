import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.util.Properties;
import java.util.TreeMap;

/** Reads texts (length, bytes) from stdin; prints what java.util.Properties makes of each, in a line of JSON. */
public class LoadProperties {
    public static void main(String[] arguments) throws Exception {
        DataInputStream input = new DataInputStream(System.in);
        StringBuilder out = new StringBuilder();
        for (int left = input.readInt(); left > 0; left--) {
            Properties properties = new Properties();
            try {
                properties.load(new ByteArrayInputStream(input.readNBytes(input.readInt())));
                out.append(json(properties));
            } catch (IllegalArgumentException refused) {
                out.append("null");
            }
            out.append('\n');
        }
        System.out.print(out);
    }

    private static String json(Properties properties) {
        StringBuilder object = new StringBuilder("{");
        new TreeMap<>(properties).forEach((key, value) -> object
            .append(object.length() > 1 ? "," : "")
            .append(quoted((String) key)).append(":").append(quoted((String) value)));
        return object.append("}").toString();
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        text.chars().forEach(unit -> quoted.append(String.format("\\u%04x", unit)));
        return quoted.append('"').toString();
    }
}
