import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { stackModels, type UpstreamUrls } from '@gatehouse/tools/stack-models'
import { createTenants } from '@gatehouse/tools/start-stack'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { installClaudeCode } from './support/claude-code/install.ts'
import { type ClaudeCodeTurn, takeTurn } from './support/claude-code/turn.ts'
import { clearRecords, type Recorded, recordedBy, toolHistoryIn } from './support/codex/upstream.ts'
import { passUnknown } from './support/streams/models.ts'
import { useStack } from './support/use-stack.ts'

// Claude Code as users run it, with Gatehouse as its address. What it sends depends on the name of the model; claude-code.test.ts
// has the requests one by one.

const claudeCode = await installClaudeCode()
const program = 'program' in claudeCode ? claudeCode.program : ''
if ('reason' in claudeCode) console.warn(`Tests are skipped. ${claudeCode.reason}`)

/** Names of models: whether Claude Code sends them instructions between other messages. */
const names = [
  ['one that it knows', 'claude-sonnet-4-5', false],
  ['one that it does not know', 'claude-sonnet', true],
  ['a new one', 'claude-opus-4-8', true],
] as const

/** Upstreams whose models have these names: one of its own format, and two whose answers must be translated. */
const upstreams = [
  ['claude-scripted', '/v1/messages', 'system'],
  ['chat-scripted', '/v1/chat/completions', 'system'],
  ['responses-scripted', '/v1/responses', 'developer'],
] as const

const catalogueFor = (served: string) => (urls: UpstreamUrls) => {
  const { models, upstreams: known } = stackModels(urls)
  const named = models
    .filter(({ id }) => id === served)
    .flatMap((model) => names.map(([, id]) => ({ ...model, id })))
  return { upstreams: passUnknown(known), models: [...models, ...named] }
}

/** The roles in a conversation, without a system prompt at its beginning. */
function rolesIn({ body }: Recorded): unknown[] {
  const messages = (body['messages'] ?? body['input']) as { role?: string }[]
  const roles = messages.map(({ role }) => role)
  return roles.slice(roles.indexOf('user'))
}

describe.skipIf(program === '').each(upstreams)(
  'Claude Code, served by %s',
  (served, path, role) => {
    const stack = useStack({ models: catalogueFor(served) })
    let key = ''
    beforeAll(async () => {
      const [tenant] = await createTenants(stack().service, 1)
      key = tenant?.project_key ?? ''
    })
    const upstreamUrl = () => stack().description.upstream_url
    beforeEach(() => clearRecords(upstreamUrl()))

    const turn = (model: string, script: Script, files?: Record<string, string>) =>
      takeTurn({
        program,
        baseUrl: stack().description.base_url,
        key,
        model,
        script,
        ...(files && { files }),
      })

    function expectFinished(taken: ClaudeCodeTurn, result: string) {
      expect([taken.exitCode, taken.isError, taken.result], taken.printed).toEqual([
        0,
        false,
        result,
      ])
    }

    describe.each(names)('with the name of %s, %s', (_, model, hasInstructions) => {
      test('a turn ends with the text of the model, after one upstream call', async () => {
        expectFinished(await turn(model, { text: 'The gate is open.' }), 'The gate is open.')
        const requests = await recordedBy(upstreamUrl())
        expect(requests.map((request) => request.path)).toEqual([path])
        expect(rolesIn(requests[0]!).includes(role)).toBe(hasInstructions)
        expect(JSON.stringify(requests[0]?.headers)).not.toContain(key)
      })

      test('a tool that the model calls is run, and its result reaches it', async () => {
        const toolCalls = [{ name: 'Read', arguments: { file_path: 'gate.txt' } }]
        const taken = await turn(model, { toolCalls }, { 'gate.txt': 'The gate is blue.' })
        expectFinished(taken, 'Hello from the scripted upstream.')
        const requests = await recordedBy(upstreamUrl())
        expect(requests.map((request) => request.path)).toEqual([path, path])
        const { calls, results } = toolHistoryIn(requests[1]!)
        expect(calls).toHaveLength(1)
        expect(results.map(({ id }) => id)).toEqual(calls)
        expect(results[0]?.text).toContain('The gate is blue.')
      })
    })

    test('an unknown model is named in the error, and no upstream is called', async () => {
      const taken = await turn('claude-nowhere', { text: 'The gate is open.' })
      expect([taken.exitCode, taken.isError], taken.printed).toEqual([1, true])
      expect(taken.result).toContain('claude-nowhere')
      expect(await recordedBy(upstreamUrl())).toEqual([])
    })
  },
)
