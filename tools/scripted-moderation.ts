import { fileURLToPath } from 'node:url'

const beside = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** Settings by which texts are scored by the marks in them, such as `[[cat:hate=0.9]]`; never in production. */
export const scriptedModeration = {
  MODERATION_FILE: beside('scripted-moderation.json'),
  ALLOW_TEST_DOUBLES: 'true',
}

/** Also with a judge of rules in plain language, which believes marks such as `[[rule:<policy id>=0.9]]`. */
export const stackModeration = {
  ...scriptedModeration,
  MODERATION_FILE: beside('stack-moderation.json'),
}
