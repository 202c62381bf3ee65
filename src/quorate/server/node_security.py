"""The security of a node's listeners and peer connections, built from its configuration."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from quorate.base.errors import QuorateError
from quorate.config.monitoring_settings import CREDENTIALS_FILE, METRICS_PREFIX
from quorate.config.node_config import NodeConfig
from quorate.config.secret_files import KEY_STORE, open_secrets
from quorate.config.security_settings import (
    MAPPING_RULES,
    TLS_PROTOCOLS,
    dynamic_stores,
    dynamic_without_effect,
    listener_prefix,
    listener_values,
)
from quorate.config.settings import ConfigError
from quorate.security.principal import ANONYMOUS, USER, KafkaPrincipal, SslPrincipalMapper
from quorate.security.tls.contexts import client_context, context_problems, server_context
from quorate.security.tls.names import subject_of
from quorate.security.tls.reload import (
    NewContext,
    Reader,
    RefusedChange,
    ReloadingContext,
    StoreChange,
)
from quorate.security.tls.store_process import StoreProcess
from quorate.security.tls.stores import StoreError
from quorate.server.authentication import (
    OPEN_LISTENER,
    OPEN_PEER,
    ListenerSecurity,
    PeerSecurity,
    SecuredProtocol,
)
from quorate.server.certificates import Certificates, CertificateState
from quorate.server.logs import LOG
from quorate.server.page_security import CredentialsError, PageSecurity
from quorate.server.principals import principal_builder
from quorate.server.tls_transport import TlsTransport

_Found = dict[str, NewContext | RefusedChange]
"""What was read of changed stores, or why it is refused, by what it secures."""
POLL_S: Final = 5.0
"""How often the files of key stores and trust stores are checked for changes."""
_WARN_DAYS: Final = 14
_WARN_EVERY_S: Final = 86_400.0


class _ListenerTls:
    """TLS of one listener: the context of today and the names of its clients."""

    def __init__(
        self, listener: str, values: Mapping[str, str], wall_s: Callable[[], float], *, names: bool
    ) -> None:
        """names: the certificates of clients name them; with SASL, the login does."""
        self.listener = listener
        self.certificates = ReloadingContext(values, server_context, wall_s)
        self._mapper = SslPrincipalMapper(values.get(MAPPING_RULES)) if names else None

    def wrap(self, upper: SecuredProtocol) -> asyncio.Protocol:
        return TlsTransport(upper, self.certificates.context, self._principal_of)

    def _principal_of(self, certificate: bytes | None) -> str:
        """Return the name of `DefaultKafkaPrincipalBuilder`: no certificate, no name."""
        if certificate is None or self._mapper is None:
            return ANONYMOUS
        return str(KafkaPrincipal(USER, self._mapper.name_of(subject_of(certificate))))


class _PeerTls:
    """TLS of the connections to other controllers."""

    def __init__(self, values: Mapping[str, str], wall_s: Callable[[], float]) -> None:
        self.certificates = ReloadingContext(values, client_context, wall_s)

    def wrap(self, upper: SecuredProtocol, host: str) -> asyncio.Protocol:
        context = self.certificates.context
        return TlsTransport(upper, context, _nobody, server_hostname=host)


def _nobody(certificate: bytes | None) -> str:
    return ANONYMOUS


class NodeSecurity:
    """What each listener asks for, and what connections to peers need. Raises ConfigError.

    Peers are reached as the first of `controller.listener.names` is secured.
    """

    def __init__(self, config: NodeConfig, wall_s: Callable[[], float] = time.time) -> None:
        """Read the stores. `wall_s`: s since 1970."""
        self._wall_s = wall_s
        self._warn_at_s = 0.0
        self._listeners: dict[str, ListenerSecurity] = {}
        self._certificates: dict[str, ReloadingContext] = {}
        self._file = config.file
        self._protocols = config.security_protocols
        self._listener_of: dict[str, str] = {}
        """The name of the listener whose keys count, by what they secure."""
        self._dynamic: Callable[[], Mapping[str, str]] = dict
        self._without_effect: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._is_closed = False
        self._process = StoreProcess()
        self._reader: Reader = self._process.make
        self._principal_of = principal_builder(config)
        self.peers: PeerSecurity = OPEN_PEER
        self.pages = page_security(config)
        """Who may read the pages of the HTTP listener."""
        if self.pages.certificates is not None:
            self._certificates["HTTP listener"] = self.pages.certificates
        name = ""
        try:
            for name in (listener.name for listener in config.listeners):
                if config.security_protocols[name] in TLS_PROTOCOLS:
                    protocol = config.security_protocols[name]
                    tls = _ListenerTls(name, self._values(name), wall_s, names=protocol == "SSL")
                    self._listeners[name] = ListenerSecurity(wrap=tls.wrap)
                    self._add(f"listener {name}", name, tls.certificates)
            name = config.controller_listener_names[0].upper()
            if config.security_protocols.get(name) in TLS_PROTOCOLS:
                peer = _PeerTls(self._values(name), wall_s)
                self.peers = PeerSecurity(wrap=peer.wrap)
                self._add("connections to controllers", name, peer.certificates)
        except QuorateError as error:
            raise _fault(config, name, error) from None

    def _values(self, listener: str) -> dict[str, str]:
        return listener_values(self._file, listener, self._protocols[listener])

    def _add(self, what: str, listener: str, certificates: ReloadingContext) -> None:
        self._certificates[what] = certificates
        self._listener_of[what] = listener

    def of(self, listener: str) -> ListenerSecurity:
        """What the listener asks of a connection."""
        security = self._listeners.get(listener, OPEN_LISTENER)
        if self._principal_of is None:
            return security
        return replace(security, principal_of=self._principal_of)

    def certificates(self) -> Certificates:
        """The state of the certificates now."""
        now_s = self._wall_s()
        return {
            what: CertificateState(one.days_to_expiry(now_s), one.fault, one.refused_changes)
            for what, one in self._certificates.items()
        }

    def watch(
        self,
        loop: asyncio.AbstractEventLoop,
        dynamic: Callable[[], Mapping[str, str]] = dict,
        reader: Reader | None = None,
    ) -> None:
        """Read changed certificates, from now on; warn now and daily of those that expire.

        Warn of keys in the dynamic configs that have no effect. `dynamic`: those of this node, as committed.
        `reader`: makes a context of changed stores, in a thread; None: with a process of its own.
        """
        if (
            any(protocol != "PLAINTEXT" for protocol in self._protocols.values())
            or self._certificates
        ):
            self._dynamic = dynamic
            self._reader = reader or self._process.make
            self._warn_at_s = loop.time()
            self._poll(loop)

    def close(self) -> None:
        self._is_closed = True
        self._process.close()
        if self._timer is not None:
            self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()

    def _warn(self, what: str) -> None:
        left = self._certificates[what].days_to_expiry(self._wall_s())
        if left is not None and left < _WARN_DAYS:
            when = f"expires in {left:.1f} days" if left > 0 else "has expired"
            LOG.warning("The certificate of %s %s: renew it", what, when)

    def _warn_of_dynamic(self, configs: Mapping[str, str]) -> None:
        found = [
            key
            for listener in self._protocols
            for key in dynamic_without_effect(configs, self._file, listener)
        ]
        for key in set(found).difference(self._without_effect):
            LOG.warning(
                "The dynamic config %s has no effect in a controller: set it in its file, and start it again",
                key,
            )
        self._without_effect = found

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking = loop.create_task(self._look_and_go_on(loop))

    async def _look_and_go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        is_time_to_warn = loop.time() >= self._warn_at_s
        if is_time_to_warn:
            self._warn_at_s += _WARN_EVERY_S
        try:
            await self._look(loop, is_time_to_warn=is_time_to_warn)
        except Exception:
            LOG.exception("The look at the certificates has failed")
        finally:
            if not self._is_closed:
                self._timer = loop.call_later(POLL_S, self._poll, loop)

    async def _look(self, loop: asyncio.AbstractEventLoop, *, is_time_to_warn: bool) -> None:
        configs = self._dynamic()
        self._warn_of_dynamic(configs)
        changes = self._changes(configs)
        found: _Found = {}
        if changes:
            found = await loop.run_in_executor(None, self._read, changes)
        open_files: dict[str, None] = {}
        for what, one in self._certificates.items():
            changed = None if what not in changes else one.use(changes[what], found[what])
            if changed is True:
                LOG.info("Read the changed certificates of %s", what)
            elif changed is False:
                LOG.error(
                    "The changed certificates of %s cannot be used, the old ones stay: %s",
                    what,
                    one.fault,
                )
            if changed is not None and what in self._listener_of:
                files = _open_key_store(changes[what].values, self._listener_of[what])
                open_files |= dict.fromkeys(files)
            if is_time_to_warn or changed is True:
                self._warn(what)
        for warning in open_files:
            LOG.warning("%s", warning)

    def _changes(self, configs: Mapping[str, str]) -> Mapping[str, StoreChange]:
        """What must be read, by what it secures."""
        found = {}
        for what, one in self._certificates.items():
            listener = self._listener_of.get(what)  # the HTTP listener has no dynamic configs
            values = None
            if listener is not None:
                values = {**self._values(listener), **dynamic_stores(configs, listener)}
            found[what] = one.change(values)
        return {what: change for what, change in found.items() if change is not None}

    def _read(self, changes: Mapping[str, StoreChange]) -> _Found:
        return {
            what: self._certificates[what].read(change, self._reader)
            for what, change in changes.items()
        }


def tls_problems(config: NodeConfig) -> Iterator[ConfigError]:
    """What is wrong with the keys of TLS, as far as each can be looked at without the others."""
    peers = config.controller_listener_names[0].upper()
    for name, protocol in config.security_protocols.items():
        if protocol not in TLS_PROTOCOLS:
            continue
        values = listener_values(config.file, name, protocol)
        is_bound = name in {listener.name for listener in config.listeners}
        for is_server in (*((True,) if is_bound else ()), *((False,) if name == peers else ())):
            for problem in context_problems(values, is_server=is_server):
                yield _fault(config, name, problem)
        if is_bound and protocol == "SSL":
            try:
                SslPrincipalMapper(values.get(MAPPING_RULES))
            except QuorateError as error:
                yield _fault(config, name, error)
    if config.pages.tls is not None:
        for problem in context_problems(config.pages.tls, is_server=True):
            yield _fault_of_pages(config, problem)


def _fault(config: NodeConfig, listener: str, error: QuorateError) -> ConfigError:
    """The error about a store or the mapping rules, with the listener that it is about."""
    where = config.source or None
    if isinstance(error, StoreError):
        prefix = listener_prefix(listener)
        why = f"Listener {listener}: {error} (also with the prefix {prefix})"
        return ConfigError(why, key=error.key, where=where)
    why = f"Listener {listener}: {MAPPING_RULES}: {error}"
    return ConfigError(why, key=MAPPING_RULES, where=where)


def _fault_of_pages(config: NodeConfig, error: StoreError) -> ConfigError:
    key = METRICS_PREFIX + error.key
    return ConfigError(
        f"The HTTP listener: {error} (or {key})", key=key, where=config.source or None
    )


def _open_key_store(values: Mapping[str, str], listener: str) -> Iterator[str]:
    """A warning of a key store that others can read; `read_settings` warns of the file's own keys."""
    path = values.get(KEY_STORE, "")
    return open_secrets({}, {listener_prefix(listener) + KEY_STORE: path}, "")


def page_security(config: NodeConfig) -> PageSecurity:
    """Who may read the pages of the HTTP listener. Raises ConfigError."""
    try:
        return PageSecurity(config.pages)
    except StoreError as error:
        raise _fault_of_pages(config, error) from None
    except CredentialsError as error:
        raise ConfigError(str(error), key=CREDENTIALS_FILE, where=config.source or None) from None
