"""Length-prefixed pickles over a pair of pipes.

The pipes have their own file descriptors, so that the output of TVM or of a kernel cannot corrupt
messages.
"""

from __future__ import annotations

import os
import pickle
import struct

from ansor.config import WORKERS

_LENGTH = struct.Struct("<Q")


class Channel:
    """One end of the conversation.

    Args:
        read_fd, write_fd: open descriptors; the channel owns them from here on.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self._write_fd = write_fd
        self._received = bytearray()

    def send(self, message: object) -> None:
        """Writes one message.

        Raises:
            BrokenPipeError: the other end is gone.
        """
        body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        view = memoryview(_LENGTH.pack(len(body)) + body)
        while view:
            view = view[os.write(self._write_fd, view) :]

    def read_some(self) -> None:
        """Reads the available bytes once; waits for the first byte.

        Raises:
            EOFError: the other end is gone.
        """
        data = os.read(self.read_fd, WORKERS.pipe_bytes)
        if not data:
            raise EOFError("the other end of the pipe is closed")
        self._received += data

    def take(self) -> object | None:
        """Returns the next complete message, or None when there is none yet."""
        start = _LENGTH.size
        if len(self._received) < start:
            return None
        end = start + _LENGTH.unpack_from(self._received)[0]
        if len(self._received) < end:
            return None
        body = bytes(self._received[start:end])
        del self._received[:end]
        message: object = pickle.loads(body)
        return message

    def receive(self) -> object:
        """Waits for one message.

        Raises:
            EOFError: the other end is gone.
        """
        while (message := self.take()) is None:
            self.read_some()
        return message

    def close(self) -> None:
        """Closes both descriptors; may be called twice."""
        for fd in {self.read_fd, self._write_fd} - {-1}:
            os.close(fd)
        self.read_fd = self._write_fd = -1
