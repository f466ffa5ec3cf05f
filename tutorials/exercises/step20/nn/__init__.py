from mynode.nn import schedules
from mynode.nn.language_model import GPT
