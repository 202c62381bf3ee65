"""What the principal builders of Kafka's tests do, for our controllers (`quorate.principal.builder`)."""

import re

from quorate.security.principal import ANONYMOUS, AuthenticatedClient


def broker(client: AuthenticatedClient) -> str:
    """`AbstractAuthorizerIntegrationTest.PrincipalBuilder` on the listeners of a controller."""
    return "User:broker"


def group_of_brokers(client: AuthenticatedClient) -> str:
    """`GroupAuthorizerIntegrationTest.GroupPrincipalBuilder` on the listeners of a controller."""
    return "Group:broker"


def by_certificate(client: AuthenticatedClient) -> str:
    """`SslAdminIntegrationTest.TestPrincipalBuilder`."""
    found = re.fullmatch(r"User:O=A (.*?),CN=(.*?)", client.principal)
    if client.security_protocol == "PLAINTEXT" or found is None:
        return ANONYMOUS
    if found[1] == "server" or found[2] == "super-user":
        return "User:server"
    return "User:client" if found[2] == "client" else ANONYMOUS
