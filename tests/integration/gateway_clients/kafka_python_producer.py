"""kafka-python's producer, idempotent as it is by default."""

from functools import partial
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from tests.integration.gateway_clients.child import Record, Report, asked_to_stop, paced_records, parse_options, typed


def main() -> None:
    options, stop, report = parse_options(), asked_to_stop(), Report()
    producer = KafkaProducer(
        bootstrap_servers=options.bootstrap_servers.split(","), client_id=options.name, **typed(options.properties)
    )
    sent = 0
    for record in paced_records(options, stop):
        sent += 1
        try:
            future = producer.send(options.topic, record.value, partition=record.partition)
        except KafkaError as error:
            failed(report, record, error)
        else:
            future.add_callback(partial(stored, report, record))
            future.add_errback(partial(failed, report, record))
    producer.flush()
    producer.close()
    report.done(sent)


def stored(report: Report, record: Record, metadata: Any) -> None:
    report.acked(record.number, metadata.partition, metadata.offset)


def failed(report: Report, record: Record, error: BaseException) -> None:
    report.failed(record.number, type(error).__name__, str(error))


if __name__ == "__main__":
    main()
