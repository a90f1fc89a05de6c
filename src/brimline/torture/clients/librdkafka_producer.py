"""librdkafka's producer, in Python's clothes (confluent-kafka)."""

import threading

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from brimline.torture.clients.child import Record, Report, asked_to_stop, paced_records, parse_options

POLL_SECONDS = 0.1


def main() -> None:
    options, stop = parse_options(), asked_to_stop()
    report = Report(options)
    producer = Producer(
        {"bootstrap.servers": options.bootstrap_servers, "client.id": options.name, **options.properties}
    )
    ended = threading.Event()
    polling = threading.Thread(target=keep_polling, args=(producer, ended))
    polling.start()
    sent = 0
    for record in paced_records(options, stop):
        sent += 1
        report.sent(record.number)
        send(producer, options.topic, record, report)
    while producer.flush(POLL_SECONDS):
        pass
    ended.set()
    polling.join()
    report.done(sent)


def keep_polling(producer: Producer, ended: threading.Event) -> None:
    """Deliveries are reported only while somebody polls."""
    while not ended.is_set():
        producer.poll(POLL_SECONDS)


def send(producer: Producer, topic: str, record: Record, report: Report) -> None:
    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            offset = message.offset()
            # A retry of what was stored already, whose answer was lost: the broker says so, and no offset with it
            report.acked(record.number, message.partition() or 0, -1 if offset is None else offset)
        else:
            report.failed(record.number, error.name(), error.str())

    while True:
        try:
            producer.produce(topic, record.value, partition=record.partition, on_delivery=delivered)
        except BufferError:  # its queue is full: as every application does, wait for room
            producer.poll(POLL_SECONDS)
        except KafkaException as refused:
            delivered(refused.args[0], Message())
            return
        else:
            return


if __name__ == "__main__":
    main()
