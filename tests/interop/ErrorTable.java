import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Every error of the protocol, one line each: code, name, may it be sent again, text. */
public class ErrorTable {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            boolean again = error.exception() instanceof RetriableException;
            System.out.println(
                error.code() + "\t" + error + "\t" + again + "\t" + error.message());
        }
    }
}
