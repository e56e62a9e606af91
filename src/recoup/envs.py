"""Registers Recoup's tasks as Gymnasium environments, once it is imported.

    import gymnasium, recoup.envs

    env = gymnasium.make("recoup/Toy-v0")

Or in one: `gymnasium.make("recoup.envs:recoup/Toy-v0")`.
"""

from recoup.tasks.registry import register_envs

register_envs()
