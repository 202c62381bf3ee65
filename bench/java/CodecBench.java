import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Scanner;
import java.util.function.Supplier;

import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Encodes and decodes messages with kafka-clients as its own network code does.
 *
 * Reads lines of name, class, version and hex bytes, tab between; prints a JSON object of calls per
 * second of this thread's CPU time. Fails when Java does not write the bytes it was given.
 */
public class CodecBench {
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();
    private static Object sink;

    public static void main(String[] arguments) throws Exception {
        double seconds = Double.parseDouble(arguments[0]);
        List<String> results = new ArrayList<>();
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split("\t");
            Class<?> type = Class.forName("org.apache.kafka.common.message." + parts[1]);
            ApiMessage empty = (ApiMessage) type.getConstructor().newInstance();
            byte[] wire = HexFormat.of().parseHex(parts[3]);
            measure(parts[0], empty, Short.parseShort(parts[2]), wire, seconds, results);
        }
        System.out.println("{" + String.join(", ", results) + "}");
    }

    private static void measure(
        String name, ApiMessage empty, short version, byte[] wire, double seconds, List<String> results
    ) throws Exception {
        ApiMessage message = decode(empty, version, wire);
        if (!Arrays.equals(wire, encode(message, version)))
            throw new IllegalStateException(name + ": Java writes other bytes");
        results.add(result(name + " encode", rate(() -> encode(message, version), seconds)));
        results.add(result(name + " decode", rate(() -> decode(empty, version, wire), seconds)));
    }

    private static byte[] encode(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    private static ApiMessage decode(ApiMessage empty, short version, byte[] wire) {
        try {
            ApiMessage message = empty.getClass().getConstructor().newInstance();
            message.read(new ByteBufferAccessor(ByteBuffer.wrap(wire)), version);
            return message;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The best of five rounds that together take `seconds`, after a warm-up of as long. */
    private static double rate(Supplier<Object> work, double seconds) {
        round(work, seconds);
        double best = 0;
        for (int i = 0; i < 5; i++)
            best = Math.max(best, round(work, seconds / 5));
        return best;
    }

    private static double round(Supplier<Object> work, double seconds) {
        long start = CLOCK.getCurrentThreadCpuTime();
        long count = 0;
        double elapsed = 0;
        while (elapsed < seconds) {
            for (int i = 0; i < 10; i++)
                sink = work.get();
            count += 10;
            elapsed = (CLOCK.getCurrentThreadCpuTime() - start) / 1e9;
        }
        return count / elapsed;
    }

    private static String result(String name, double rate) {
        return "\"" + name + "\": " + String.format(Locale.ROOT, "%.1f", rate);
    }
}
