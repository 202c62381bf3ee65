import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.PrintStream;
import org.apache.kafka.tools.DumpLogSegments;

/** Reads command lines (count; arguments joined by line feeds) and runs Kafka's dump-log for each. Prints its stdout and its exit code. */
public class DumpEach {
    public static void main(String[] arguments) throws Exception {
        DataInputStream input = new DataInputStream(System.in);
        DataOutputStream output = new DataOutputStream(System.out);
        PrintStream silent = new PrintStream(new ByteArrayOutputStream());
        System.setErr(silent);
        for (int left = input.readInt(); left > 0; left--) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true));
            int code = 0;
            try {
                DumpLogSegments.main(input.readUTF().split("\n"));
            } catch (Exception failed) {
                code = 1;
            }
            output.writeInt(code);
            output.writeInt(printed.size());
            printed.writeTo(output);
        }
        output.flush();
    }
}
