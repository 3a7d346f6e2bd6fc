"""A client of RabbitMQ: rabbitmq.py COMMAND QUEUE [BODY...]. What it publishes is confirmed, or it fails."""
import os
import ssl
import sys
import threading

import pika


def connect():
    host = os.environ["HOST"]
    return pika.BlockingConnection(pika.ConnectionParameters(
        host, 5671, credentials=pika.PlainCredentials(os.environ["USERNAME"], os.environ["PASSWORD"]),
        ssl_options=pika.SSLOptions(ssl.create_default_context(cafile="/ca/ca.crt"), host),
        socket_timeout=3, stack_timeout=5, blocked_connection_timeout=5, heartbeat=5))


def publish(queue, bodies):
    channel = connect().channel()
    channel.confirm_delivery()
    for body in bodies:
        channel.basic_publish("", queue, body.encode(), pika.BasicProperties(delivery_mode=2), mandatory=True)


def fill(queue):
    connect().channel().queue_declare(queue, durable=True)
    threads = [threading.Thread(target=publish, args=(queue, ["%05d %d" % (n, n * 104729) for n in range(part, 10000, 20)])) for part in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def read(queue):
    """Prints all messages, which stay in the queue."""
    channel = connect().channel()
    channel.basic_qos(prefetch_count=60000)
    for _, _, body in channel.consume(queue, inactivity_timeout=3):
        if body is not None:
            print(body.decode())
        elif not connect().channel().queue_declare(queue, passive=True).method.message_count:
            return  # all have come: on a busy machine, some may come later than others


def has(queue):
    try:
        connect().channel().queue_declare(queue, passive=True)
        print("yes")
    except pika.exceptions.ChannelClosedByBroker as e:
        if e.reply_code != 404:
            raise
        print("no")


def purge(queue):
    channel = connect().channel()
    channel.queue_declare(queue, durable=True)
    channel.queue_purge(queue)


command, name = sys.argv[1:3]
if command == "publish":
    publish(name, sys.argv[3:])
else:
    {"fill": fill, "read": read, "has": has, "purge": purge}[command](name)
