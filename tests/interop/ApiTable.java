import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.NotControllerException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownServerException;
import org.apache.kafka.common.message.AlterClientQuotasRequestData;
import org.apache.kafka.common.message.AlterConfigsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.ControllerRegistrationRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.DeleteTopicsRequestData;
import org.apache.kafka.common.message.IncrementalAlterConfigsRequestData;
import org.apache.kafka.common.message.UnregisterBrokerRequestData;
import org.apache.kafka.common.message.UnregisterControllerRequestData;
import org.apache.kafka.common.message.UpdateFeaturesRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AlterClientQuotasRequest;
import org.apache.kafka.common.requests.AlterConfigsRequest;
import org.apache.kafka.common.requests.AlterPartitionReassignmentsRequest;
import org.apache.kafka.common.requests.ControllerRegistrationRequest;
import org.apache.kafka.common.requests.CreatePartitionsRequest;
import org.apache.kafka.common.requests.CreateTopicsRequest;
import org.apache.kafka.common.requests.DeleteTopicsRequest;
import org.apache.kafka.common.requests.ElectLeadersRequest;
import org.apache.kafka.common.requests.IncrementalAlterConfigsRequest;
import org.apache.kafka.common.requests.UnregisterBrokerRequest;
import org.apache.kafka.common.requests.UnregisterControllerRequest;
import org.apache.kafka.common.requests.UpdateFeaturesRequest;

/**
 * `forwardable`, key: what a broker forwards. `text`, key, case, text: what the response to a failed
 * request says beside the error code; `null` for no text.
 */
public class ApiTable {
    public static void main(String[] args) {
        for (ApiKeys key : ApiKeys.values()) {
            if (key.forwardable) System.out.println("forwardable\t" + key.id);
        }
        Map<String, Throwable> cases = new TreeMap<>(Map.of(
            "not controller", new NotControllerException("The active controller appears to be node 3."),
            "unknown", new UnknownServerException(new RuntimeException("a defect")),
            "timed out", new TimeoutException(),
            "shutting down", new TimeoutException("The controller is shutting down."),
            "policy", new PolicyViolationException("refused")));
        for (AbstractRequest request : requests()) {
            cases.forEach((name, error) -> System.out.println(
                "text\t" + request.apiKey().id + "\t" + name + "\t" + text(request, error)));
        }
    }

    private static String text(AbstractRequest request, Throwable error) {
        String data = request.getErrorResponse(0, error).data().toString();
        Matcher found = Pattern.compile("errorMessage=(?:'([^']*)'|null)").matcher(data);
        if (!found.find()) throw new AssertionError(data);
        return found.group(1);
    }

    private static List<AbstractRequest> requests() {
        var topics = new CreateTopicsRequestData();
        topics.topics().add(new CreateTopicsRequestData.CreatableTopic().setName("t"));
        var deleted = new DeleteTopicsRequestData();
        deleted.topics().add(new DeleteTopicsRequestData.DeleteTopicState().setName("t"));
        var partitions = new CreatePartitionsRequestData();
        partitions.topics().add(new CreatePartitionsRequestData.CreatePartitionsTopic().setName("t"));
        var reassigned = new AlterPartitionReassignmentsRequestData();
        reassigned.topics().add(new AlterPartitionReassignmentsRequestData.ReassignableTopic().setName("t"));
        var quotas = new AlterClientQuotasRequestData();
        quotas.entries().add(new AlterClientQuotasRequestData.EntryData());
        var altered = new AlterConfigsRequestData();
        altered.resources().add(new AlterConfigsRequestData.AlterConfigsResource());
        var changed = new IncrementalAlterConfigsRequestData();
        changed.resources().add(new IncrementalAlterConfigsRequestData.AlterConfigsResource());
        return List.of(
            new CreateTopicsRequest.Builder(topics).build((short) 7),
            new DeleteTopicsRequest.Builder(deleted).build((short) 6),
            new CreatePartitionsRequest.Builder(partitions).build((short) 3),
            new ElectLeadersRequest.Builder(
                ElectionType.PREFERRED, List.of(new TopicPartition("t", 0)), 0).build((short) 2),
            new AlterPartitionReassignmentsRequest.Builder(reassigned).build((short) 1),
            new AlterConfigsRequest(altered, (short) 2),
            new IncrementalAlterConfigsRequest(changed, (short) 1),
            new AlterClientQuotasRequest(quotas, (short) 1),
            new UpdateFeaturesRequest(new UpdateFeaturesRequestData(), (short) 1),
            new UnregisterBrokerRequest(new UnregisterBrokerRequestData(), (short) 0),
            new UnregisterControllerRequest(new UnregisterControllerRequestData(), (short) 0),
            new ControllerRegistrationRequest(new ControllerRegistrationRequestData(), (short) 0));
    }
}
