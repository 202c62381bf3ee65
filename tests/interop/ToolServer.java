import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntConsumer;

/**
 * Runs Kafka's tools one after the other in one JVM, for the start of a JVM costs a second.
 *
 * A request on stdin is the main class, the number of words and the words; the response is the exit
 * code, the bytes of stdout and those of stderr.
 */
public class ToolServer {
    /** Kafka's loggers and Scala's console keep the stream that they find first. */
    static final class Switch extends OutputStream {
        private ByteArrayOutputStream target = new ByteArrayOutputStream();

        synchronized byte[] take() {
            byte[] taken = target.toByteArray();
            target = new ByteArrayOutputStream();
            return taken;
        }

        @Override
        public synchronized void write(int b) {
            target.write(b);
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int count) {
            target.write(bytes, from, count);
        }
    }

    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(new FileInputStream(FileDescriptor.in));
        DataOutputStream answers = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
        Switch out = new Switch();
        Switch err = new Switch();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        while (true) {
            String main;
            try {
                main = text(in);
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            String[] words = new String[in.readInt()];
            for (int i = 0; i < words.length; i++) {
                words[i] = text(in);
            }
            Result result = run(main, words, out, err);
            ByteArrayOutputStream answer = new ByteArrayOutputStream();
            DataOutputStream data = new DataOutputStream(answer);
            data.writeInt(result.code());
            for (byte[] each : new byte[][] {result.out(), result.err()}) {
                data.writeInt(each.length);
                data.write(each);
            }
            answers.write(answer.toByteArray());
            answers.flush();
        }
    }

    private static String text(DataInputStream in) throws IOException {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    record Result(int code, byte[] out, byte[] err) {}

    private static Result run(String main, String[] words, Switch out, Switch err) throws Exception {
        CompletableFuture<Result> result = new CompletableFuture<>();
        out.take();
        err.take();
        // The first exit counts. Then the tool's stack unwinds, so that it closes its clients; what its
        // handlers print and exit with is no part of the result.
        onExit((status) -> {
            complete(result, status, out, err);
            throw new Error("the tool has exited");
        });
        Thread tool = new Thread(() -> {
            int status = 0;
            try {
                Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) words);
            } catch (InvocationTargetException error) {
                System.err.print("Exception in thread \"main\" ");
                error.getCause().printStackTrace();
                status = 1;
            } catch (ReflectiveOperationException error) {
                error.printStackTrace();
                status = 1;
            }
            complete(result, status, out, err);
        });
        tool.setDaemon(true);
        tool.start();
        Result found = result.get();
        tool.join(5_000);
        return found;
    }

    /** Kafka's tools end by its class Exit, which 4.4.0 has in another package than 4.3.1. */
    private static void onExit(IntConsumer exit) throws ReflectiveOperationException {
        Class<?> kafkas = null;
        for (String place : new String[] {"utils", "utils.internals"}) {
            try {
                kafkas = Class.forName("org.apache.kafka.common." + place + ".Exit");
            } catch (ClassNotFoundException elsewhere) {
                continue;
            }
        }
        for (Method method : kafkas.getMethods()) {
            if (method.getName().equals("setExitProcedure") || method.getName().equals("setHaltProcedure")) {
                Class<?> procedure = method.getParameterTypes()[0];
                method.invoke(null, Proxy.newProxyInstance(
                    procedure.getClassLoader(), new Class<?>[] {procedure}, (self, called, words) -> {
                        exit.accept((Integer) words[0]);
                        return null;
                    }));
            }
        }
    }

    private static synchronized void complete(
            CompletableFuture<Result> result, int status, Switch out, Switch err) {
        System.out.flush();
        System.err.flush();
        result.complete(new Result(status, out.take(), err.take()));
    }
}
