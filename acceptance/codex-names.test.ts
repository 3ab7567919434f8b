import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { stackModels, type UpstreamUrls } from '@gatehouse/tools/stack-models'
import { createTenants } from '@gatehouse/tools/start-stack'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { installCodex } from './support/codex/install.ts'
import { type CodexTurn, itemsOf, takeTurn } from './support/codex/turn.ts'
import { clearRecords, recordedBy, toolHistoryIn, toolNamesIn } from './support/codex/upstream.ts'
import { passUnknown } from './support/streams/models.ts'
import { useStack } from './support/use-stack.ts'

// What Codex sends depends on the name of the model.

const codex = await installCodex()
const program = 'program' in codex ? codex.program : ''
if ('reason' in codex) console.warn(`The tests with Codex are skipped. ${codex.reason}`)

/** How tools are declared: as in all formats, or as only Responses can. */
const names = [
  ['one that it knows', 'gpt-5.5', 'as functions'],
  ['a new one that it knows', 'gpt-6.1-sol', 'as an item'],
  ['one that it does not know', 'our-coder', 'as functions'],
  ['one that is newer than Codex', 'gpt-9-nova', 'as functions'],
] as const

/** Upstreams whose models have these names: one of its own format, and two whose answers must be translated. */
const upstreams = [
  ['responses-scripted', '/v1/responses'],
  ['chat-scripted', '/v1/chat/completions'],
  ['claude-scripted', '/v1/messages'],
] as const

const catalogueFor = (served: string) => (urls: UpstreamUrls) => {
  const { models, upstreams: known } = stackModels(urls)
  const named = models
    .filter(({ id }) => id === served)
    .flatMap((model) => names.map(([, id]) => ({ ...model, id })))
  return { upstreams: passUnknown(known), models: [...models, ...named] }
}

describe.skipIf(program === '').each(upstreams)('Codex, served by %s', (served, path) => {
  const stack = useStack({ models: catalogueFor(served) })
  let key = ''
  beforeAll(async () => {
    const [tenant] = await createTenants(stack().service, 1)
    key = tenant?.project_key ?? ''
  })
  const upstreamUrl = () => stack().description.upstream_url
  beforeEach(() => clearRecords(upstreamUrl()))

  const turn = (model: string, script: Script) =>
    takeTurn({ program, baseUrl: stack().description.base_url, key, model, script })

  function expectFinished(taken: CodexTurn, text: string) {
    expect(taken.exitCode, taken.printed).toBe(0)
    expect(taken.events.at(-1)?.type, taken.printed).toBe('turn.completed')
    expect(itemsOf(taken, 'agent_message').map((item) => item.text)).toEqual([text])
  }

  describe.each(names)('with the name of %s, %s', (_, model, declared) => {
    test('a turn ends with the text of the model, after one upstream call', async () => {
      expectFinished(await turn(model, { text: 'The gate is open.' }), 'The gate is open.')
      const requests = await recordedBy(upstreamUrl())
      expect(requests.map((request) => request.path)).toEqual([path])
      expect(JSON.stringify(requests[0]?.headers)).not.toContain(key)
      const hasFunctions = toolNamesIn(requests[0]!).includes('exec_command')
      expect(hasFunctions).toBe(declared === 'as functions')
      // Models of other formats get no tools then (docs/models.md#names-that-clients-know).
      const hasItem = JSON.stringify(requests[0]?.body['input'])?.includes('additional_tools')
      expect(hasItem ?? false).toBe(declared === 'as an item' && path === '/v1/responses')
    })

    test('a tool that the model calls is run, and its result reaches it', async () => {
      const toolCalls = [{ name: 'exec_command', arguments: { cmd: 'echo the gate' } }]
      expectFinished(await turn(model, { toolCalls }), 'Hello from the scripted upstream.')
      const requests = await recordedBy(upstreamUrl())
      expect(requests.map((request) => request.path)).toEqual([path, path])
      const { calls, results } = toolHistoryIn(requests[1]!)
      expect(calls).toHaveLength(1)
      expect(results.map(({ id }) => id)).toEqual(calls)
    })
  })

  test('an unknown model fails the turn, and no upstream is called', async () => {
    const taken = await turn('gpt-nowhere', { text: 'The gate is open.' })
    expect(taken.exitCode, taken.printed).toBe(1)
    expect(taken.events.at(-1)?.type, taken.printed).toBe('turn.failed')
    expect(taken.printed).toContain("There is no model 'gpt-nowhere'")
    expect(await recordedBy(upstreamUrl())).toEqual([])
  })
})
