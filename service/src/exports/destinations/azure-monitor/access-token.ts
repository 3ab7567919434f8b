import { createHash } from 'node:crypto'

import type { AzureMonitorConfig } from '@gatehouse/contract/exports/sink-config'
import { z } from 'zod'

import { addPath } from '#exports/destinations/address.ts'
import type {
  DestinationAnswer,
  DestinationDeps,
  DeliveryOutcome,
} from '#exports/destinations/destination.ts'
import { readJsonAnswer } from '#exports/destinations/json-answer.ts'
import { outcomeOfAnswer } from '#exports/destinations/outcome.ts'
import { withoutSinkSecrets } from '#exports/destinations/without-secrets.ts'
import { BoundedMap } from '#platform/bounded-map.ts'

type Token = { text: string; endsAtMs: number }
type TokenOrOutcome = { token: string } | { outcome: DeliveryOutcome }

const tokensMax = 1000
/** A token is not used when it is about to end: a call may be on its way for a while. */
const marginMs = 5 * 60_000

const TokenAnswer = z.object({
  token_type: z.string().regex(/^bearer$/i),
  access_token: z.string().regex(/^[\x21-\x7e]{1,20000}$/),
  expires_in: z.coerce.number().positive(),
})
const TokenError = z.object({ error: z.string(), error_description: z.string().optional() })

/** Access tokens of Microsoft Entra ID for the client of a configuration, kept in memory until shortly before their end. */
export function createTokens(loginUrl: string) {
  const tokens = new BoundedMap<string, Token>(tokensMax)

  return {
    async get(config: AzureMonitorConfig, deps: DestinationDeps): Promise<TokenOrOutcome> {
      const key = keyOf(config)
      const known = tokens.get(key)
      const nowMs = deps.now().getTime()
      if (known && nowMs < known.endsAtMs - marginMs) return { token: known.text }
      tokens.delete(key)
      const answer = await ask(loginUrl, config, deps)
      if (answer.status !== 200) return { outcome: outcomeOfRefusal(config, answer) }
      const parsed = TokenAnswer.safeParse(readJsonAnswer(answer.body))
      if (!parsed.success) return { outcome: noToken }
      const { access_token: text, expires_in } = parsed.data
      tokens.set(key, { text, endsAtMs: nowMs + expires_in * 1000 })
      return { token: text }
    },
    forget: (config: AzureMonitorConfig) => void tokens.delete(keyOf(config)),
  }
}

const noToken: DeliveryOutcome = {
  kind: 'failed',
  error: 'The login did not answer with an access token.',
}

/** Only who knows the secret gets a token that it was exchanged for. */
function keyOf({ tenant_id, client_id, client_secret, token_scope }: AzureMonitorConfig): string {
  const text = JSON.stringify([tenant_id, client_id, client_secret, token_scope])
  return createHash('sha256').update(text).digest('base64')
}

const loginAddress = (loginUrl: string, { tenant_id }: AzureMonitorConfig) =>
  addPath(loginUrl, `/${tenant_id}/oauth2/v2.0/token`).href

function ask(loginUrl: string, config: AzureMonitorConfig, { request }: DestinationDeps) {
  const form = new URLSearchParams({
    client_id: config.client_id,
    client_secret: config.client_secret,
    grant_type: 'client_credentials',
    scope: config.token_scope,
  })
  return request(loginAddress(loginUrl, config), {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: form.toString(),
  })
}

/** A client or tenant that does not exist, a wrong secret or scope: all of it is 400 or 401. */
function outcomeOfRefusal(config: AzureMonitorConfig, answer: DestinationAnswer): DeliveryOutcome {
  const parsed = TokenError.safeParse(readJsonAnswer(answer.body))
  const { error = '', error_description = '' } = parsed.success ? parsed.data : {}
  // The lines after the first are numbers for Microsoft's support.
  const [description = ''] = error_description.split(/\r?\n/)
  const text = withoutSinkSecrets(`${error} ${description}`, [config.client_secret])
  const isPassing = error === 'temporarily_unavailable'
  const outcome = outcomeOfAnswer(isPassing ? { ...answer, status: 503 } : answer, `login: ${text}`)
  return outcome.kind === 'refused' ? { kind: 'misconfigured', error: outcome.error } : outcome
}
