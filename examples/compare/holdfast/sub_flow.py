"""A flow inside a flow."""

import asyncio

from holdfast import Flow, Hub

review = Flow("review")
review.node(lambda step: f"{step.input}, read", name="read")
review.node(lambda step: f"{step.received}, judged", name="judge", after="read")

book = Flow("book")
book.node(lambda step: "a chapter", name="write")
book.subflow(review, after="write")

print(asyncio.run(Hub().run(book)).outputs["review"])
