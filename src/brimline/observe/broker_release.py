"""Which release a broker is of, as far as the versions of its APIs give it away: a broker never says it outright."""

from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest

from brimline.model import BrokerId
from brimline.observe.connection import Connection, Deadline


def broker_release(connection: Connection, broker: BrokerId, deadline: Deadline) -> str:
    """``"4.3"`` for 4.3 and for whatever is newer than the client library knows; raises ``ObservationFailed``."""
    request = ApiVersionsRequest(client_software_name="brimline", client_software_version="0")
    answer = connection.ask(broker, request, deadline)
    spoken = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    return ".".join(str(part) for part in BrokerVersionData(api_versions=spoken).broker_version)
