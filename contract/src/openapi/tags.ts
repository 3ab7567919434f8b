import type { Endpoint } from '../endpoint.ts'

/** The chapters of the description, in their order, each with the paths it covers. The first match counts. */
const chapters: readonly (readonly [name: string, description: string, paths: RegExp])[] = [
  [
    'Models',
    'Call a model, count tokens, list the models.',
    /^\/v1\/(messages|responses|chat|models)\b/,
  ],
  ['Credits', 'Balance, ledger and usage.', /^\/v1\/(organization\/)?(credits|usage)\b/],
  [
    'Policies',
    'Rules for what is sent to models and what they answer.',
    /^\/v1\/organization\/policies\b/,
  ],
  [
    'Export sinks',
    "Where audit events are delivered to: the organization's own systems.",
    /^\/api\/policy-gateway\/exports\b/,
  ],
  [
    'Policy gateway',
    'One configuration for every call of the organization: what it decides, and how it is tried.',
    /^\/api\/policy-gateway\b/,
  ],
  ['API keys', 'Keys of administrators and of projects.', /^\/v1\/organization\/.*api_keys\b/],
  ['Projects', 'Who calls models, and on whose account.', /^\/v1\/organization\/projects\b/],
  [
    'Members',
    'The people of the organization, and what their roles allow.',
    /^\/v1\/organization\/(members|roles)\b/,
  ],
  [
    'Organization',
    'Who you are, and the settings, limits, models and traffic of the organization.',
    /^\/v1\/organization\//,
  ],
  ['Service', 'Health, this description, and webhooks.', /^\//],
]

export const tags = chapters.map(([name, description]) => ({ name, description }))

export function tagOf({ path }: Endpoint): string {
  const chapter = chapters.find(([, , paths]) => paths.test(path))
  if (!chapter) throw new Error(`No chapter of openapi/tags.ts covers ${path}.`)
  return chapter[0]
}
