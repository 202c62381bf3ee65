package kafka.server;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.BrokerRegistrationRequest;
import org.apache.kafka.common.requests.BrokerRegistrationResponse;
import org.apache.kafka.image.ClientQuotaImage;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.server.IntegrationTestUtils;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;

import org.mockito.Mockito;

import java.io.IOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * The configs and quotas of a controller that runs as another process: requests change them, its metadata log shows them.
 */
final class RemoteSettings {
    private RemoteSettings() { }

    /** What Controller.incrementalAlterConfigs does. */
    static CompletableFuture<Map<ConfigResource, ApiError>> alter(
            Admin admin, Map<ConfigResource, Map<String, Map.Entry<AlterConfigOp.OpType, String>>> changes) {
        Map<ConfigResource, Collection<AlterConfigOp>> asked = new HashMap<>();
        changes.forEach((resource, keys) -> asked.put(resource, keys.entrySet().stream().map(key ->
            new AlterConfigOp(new ConfigEntry(key.getKey(), key.getValue().getValue()), key.getValue().getKey())).toList()));
        return admin.incrementalAlterConfigs(asked).all().toCompletionStage().toCompletableFuture().thenApply(nothing ->
            changes.keySet().stream().collect(Collectors.toMap(resource -> resource, resource -> ApiError.NONE)));
    }

    /** What Controller.registerBroker does. */
    static CompletableFuture<BrokerRegistrationReply> register(int port, BrokerRegistrationRequestData broker)
            throws IOException {
        BrokerRegistrationResponse response =
            IntegrationTestUtils.connectAndReceive(new BrokerRegistrationRequest.Builder(broker).build(), port);
        Errors error = Errors.forCode(response.data().errorCode());
        if (error != Errors.NONE)
            return CompletableFuture.failedFuture(error.exception());
        return CompletableFuture.completedFuture(new BrokerRegistrationReply(response.data().brokerEpoch()));
    }

    /** Managers that know the controller_mutation_rate of users, which is all that tests ask. */
    static QuotaFactory.QuotaManagers quotas(Supplier<MetadataImage> image) {
        ControllerMutationQuotaManager mutations = Mockito.mock(ControllerMutationQuotaManager.class);
        Mockito.when(mutations.quota(Mockito.anyString(), Mockito.anyString()))
            .thenAnswer(call -> mutationRate(image.get(), call.getArgument(0)));
        return new QuotaFactory.QuotaManagers(null, null, null, mutations, null, null, null, Optional.empty());
    }

    private static Quota mutationRate(MetadataImage image, String user) {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, user));
        Map<String, Double> quotas = image.clientQuotas().entities().getOrDefault(entity, ClientQuotaImage.EMPTY).quotas();
        return Quota.upperBound(
            quotas.getOrDefault(QuotaConfig.CONTROLLER_MUTATION_RATE_OVERRIDE_CONFIG, (double) Long.MAX_VALUE));
    }
}
