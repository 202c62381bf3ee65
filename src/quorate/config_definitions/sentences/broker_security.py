"""Configs of brokers: authentication, encryption, authorization, delegation tokens."""
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

SENTENCES: Final = """\
authorizer.class.name: Class that decides who may do what; empty: everyone may do everything.
principal.builder.class: Class that names the principal of a connection.
security.inter.broker.protocol: Security protocol between brokers where no listener is named for it.
security.providers: Classes that add providers of security algorithms.
connections.max.reauth.ms: How long an authenticated connection lives before it must authenticate again; 0 for ever.
ssl.client.auth: Whether a client must, may or need not show a certificate.
ssl.principal.mapping.rules: Rules that shorten the name of a certificate to that of a principal.
ssl.allow.dn.changes: Whether a renewed certificate may have another distinguished name.
ssl.allow.san.changes: Whether a renewed certificate may have other alternative names.
ssl.protocol: Version of TLS to create contexts with.
ssl.provider: Name of the provider of TLS.
ssl.enabled.protocols: Versions of TLS that connections may use.
ssl.keystore.type: Format of the key store.
ssl.keystore.location: File of the key store.
ssl.keystore.password: Password of the key store.
ssl.key.password: Password of the private key.
ssl.keystore.key: The private key itself, in PEM.
ssl.keystore.certificate.chain: The certificates themselves, in PEM.
ssl.truststore.type: Format of the trust store.
ssl.truststore.location: File of the trust store.
ssl.truststore.password: Password of the trust store.
ssl.truststore.certificates: The trusted certificates themselves, in PEM.
ssl.keymanager.algorithm: Algorithm of the key manager.
ssl.trustmanager.algorithm: Algorithm of the trust manager.
ssl.endpoint.identification.algorithm: How the name of a server is checked; empty for not at all.
ssl.secure.random.implementation: Source of random numbers for TLS.
ssl.cipher.suites: Cipher suites that connections may use; empty for those of the JVM.
ssl.engine.factory.class: Class that creates TLS engines.
sasl.mechanism.inter.broker.protocol: SASL mechanism between brokers.
sasl.mechanism.controller.protocol: SASL mechanism towards controllers.
sasl.enabled.mechanisms: SASL mechanisms that clients may use.
sasl.server.callback.handler.class: Class that checks credentials for a mechanism of a listener.
sasl.client.callback.handler.class: Class that provides credentials where the node is the client.
sasl.server.max.receive.size: Largest message of an authentication.
sasl.jaas.config: Login modules of a listener or mechanism, in the format of JAAS.
sasl.login.class: Class that logs in.
sasl.login.callback.handler.class: Class that provides credentials for the login.
sasl.login.connect.timeout.ms: How long the login waits for a connection to its provider.
sasl.login.read.timeout.ms: How long the login waits for an answer of its provider.
sasl.login.retry.backoff.ms: First pause after a failed attempt to log in.
sasl.login.retry.backoff.max.ms: Longest pause after failed attempts to log in.
sasl.login.refresh.window.factor: Share of a credential's lifetime after which it is renewed.
sasl.login.refresh.window.jitter: Random share by which the time of renewal differs.
sasl.login.refresh.min.period.seconds: Shortest time before a credential is renewed.
sasl.login.refresh.buffer.seconds: Time before the end of a credential in which it must have been renewed.
sasl.kerberos.service.name: Name of the Kerberos principal of Kafka.
sasl.kerberos.kinit.cmd: Path of the kinit program.
sasl.kerberos.ticket.renew.window.factor: Share of a ticket's lifetime after which it is renewed.
sasl.kerberos.ticket.renew.jitter: Random share by which the time of renewal differs.
sasl.kerberos.min.time.before.relogin: Shortest time between two logins.
sasl.kerberos.principal.to.local.rules: Rules that shorten a Kerberos principal to a user's name.
sasl.oauthbearer.jwt.retriever.class: Class that fetches tokens.
sasl.oauthbearer.jwt.validator.class: Class that checks tokens.
sasl.oauthbearer.scope: Scope to ask for with a token.
sasl.oauthbearer.client.credentials.client.id: Id of the client at the token provider.
sasl.oauthbearer.client.credentials.client.secret: Secret of the client at the token provider.
sasl.oauthbearer.assertion.algorithm: Algorithm that signs the assertion for the token provider.
sasl.oauthbearer.assertion.claim.aud: Audience of the assertion.
sasl.oauthbearer.assertion.claim.exp.seconds: How long the assertion is valid.
sasl.oauthbearer.assertion.claim.iss: Issuer of the assertion.
sasl.oauthbearer.assertion.claim.jti.include: Whether the assertion has an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds: How far in the past the assertion begins to be valid.
sasl.oauthbearer.assertion.claim.sub: Subject of the assertion.
sasl.oauthbearer.assertion.file: File that has the whole assertion.
sasl.oauthbearer.assertion.private.key.file: File of the key that signs the assertion.
sasl.oauthbearer.assertion.private.key.passphrase: Password of that key.
sasl.oauthbearer.assertion.template.file: File with further claims and headers of the assertion.
sasl.oauthbearer.scope.claim.name: Claim of a token that has its scope.
sasl.oauthbearer.sub.claim.name: Claim of a token that names its subject.
sasl.oauthbearer.token.endpoint.url: Address of the token provider.
sasl.oauthbearer.jwks.endpoint.url: Address of the keys that tokens are checked with.
sasl.oauthbearer.jwks.endpoint.refresh.ms: How often these keys are fetched.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms: First pause after a failed attempt to fetch them.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms: Longest pause after failed attempts to fetch them.
sasl.oauthbearer.clock.skew.seconds: How far the clocks of node and token provider may differ.
sasl.oauthbearer.expected.audience: Audiences of which a token must name one.
sasl.oauthbearer.expected.issuer: Issuer that a token must name.
delegation.token.secret.key: Secret from which delegation tokens are made, the same on all nodes.
delegation.token.max.lifetime.ms: How long a delegation token can be renewed.
delegation.token.expiry.time.ms: How long a delegation token is valid until it is renewed.
delegation.token.expiry.check.interval.ms: How often expired delegation tokens are removed.
"""
