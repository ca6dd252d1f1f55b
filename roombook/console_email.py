"""E-mails on the terminal of a developer."""

from django.core.mail import EmailMessage
from django.core.mail.backends import console


class EmailBackend(console.EmailBackend):
    """Prints the text of each e-mail, and only the names of its attachments."""

    def write_message(self, message: EmailMessage) -> None:
        names = [str(each[0]) for each in message.attachments if isinstance(each, tuple)]
        attached = f"Attachments: {', '.join(filter(None, names))}\n" if names else ""
        self.stream.write(
            f"{'-' * 79}\nTo: {', '.join(message.to)}\nSubject: {message.subject}\n{attached}"
            f"\n{message.body}\n"
        )
