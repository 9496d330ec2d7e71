"""What every other package stands on: the base class of expected errors, and one strict reader of JSON.

Nothing here knows a sandbox, a verifier, a task, a policy or a model, and nothing here imports another package of the
project. Open `errors.py` first: it is the error model on one page.

- `errors.py`: the base class of expected errors, the words for a failed system call, and `reading`, which turns one
  into the other.
- `strict_json.py`: bounds and reads JSON that somebody else wrote.
"""
