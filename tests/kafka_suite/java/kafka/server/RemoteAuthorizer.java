package kafka.server;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The ACLs of a controller that runs as another process: requests change them, its metadata log shows them.
 */
final class RemoteAuthorizer implements Authorizer {
    private final Supplier<Admin> admin;
    private final Supplier<MetadataImage> image;

    RemoteAuthorizer(Supplier<Admin> admin, Supplier<MetadataImage> image) {
        this.admin = admin;
        this.image = image;
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(AuthorizableRequestContext context,
                                                                       List<AclBinding> bindings) {
        Map<AclBinding, KafkaFuture<Void>> made = admin.get().createAcls(bindings).values();
        return bindings.stream().map(binding ->
            stage(made.get(binding), nothing -> AclCreateResult.SUCCESS, AclCreateResult::new)).toList();
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(AuthorizableRequestContext context,
                                                                       List<AclBindingFilter> filters) {
        var deleted = admin.get().deleteAcls(filters).values();
        return filters.stream().map(filter -> stage(deleted.get(filter), found ->
            new AclDeleteResult(found.values().stream().map(one ->
                new AclDeleteResult.AclBindingDeleteResult(one.binding(), one.exception())).toList()),
            AclDeleteResult::new)).toList();
    }

    private static <F, R> CompletionStage<R> stage(KafkaFuture<F> future, Function<F, R> result,
                                                   Function<ApiException, R> failure) {
        return future.toCompletionStage().handle((value, error) -> {
            Throwable cause = error != null && error.getCause() != null ? error.getCause() : error;
            return cause == null ? result.apply(value) : failure.apply((ApiException) cause);
        });
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        return image.get().acls().acls().values().stream()
            .map(acl -> acl.toBinding()).filter(filter::matches).toList();
    }

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo info) {
        return Map.of();
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        throw new UnsupportedOperationException("authorize needs the controller's process");
    }

    @Override
    public void configure(Map<String, ?> configs) { }

    @Override
    public void close() { }

    @Override
    public int aclCount() {
        return image.get().acls().acls().size();
    }
}
