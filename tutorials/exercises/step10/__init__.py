from mynode.configuration import config, using_config
from mynode.functions.draws import dropout
