import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { stackModels, type UpstreamUrls } from '@gatehouse/tools/stack-models'
import { createTenants } from '@gatehouse/tools/start-stack'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { installCodex } from './support/codex/install.ts'
import { type CodexTurn, itemsOf, takeTurn } from './support/codex/turn.ts'
import { clearRecords, recordedBy, toolNamesIn, toolHistoryIn } from './support/codex/upstream.ts'
import { passUnknown } from './support/streams/models.ts'
import { useStack } from './support/use-stack.ts'

// The Codex CLI as users run it, with Gatehouse as its model provider.

const codex = await installCodex()
const program = 'program' in codex ? codex.program : ''
if ('reason' in codex) console.warn(`The tests with Codex are skipped. ${codex.reason}`)

/** An upstream that speaks Codex's own format, and two whose answers must be translated. */
const models = [
  ['gpt-scripted', '/v1/responses'],
  ['claude-scripted', '/v1/messages'],
  ['chat-scripted', '/v1/chat/completions'],
] as const

/** A model name that Codex knows: for such a model it declares its tools in another way. */
const knownName = 'gpt-6.1-sol'

function catalogue(urls: UpstreamUrls) {
  const { models: usual, upstreams } = stackModels(urls)
  const named = usual.map((model) =>
    model.id === 'gpt-scripted' ? { ...model, aliases: [knownName] } : model,
  )
  const searching = usual
    .filter(({ id }) => id === 'gpt-scripted')
    .map((model) => ({ ...model, id: 'searching', allows: ['web_search'] }))
  return { upstreams: passUnknown(upstreams), models: [...named, ...searching] }
}

describe.skipIf(program === '')('Codex', () => {
  const stack = useStack({ models: catalogue })
  let key = ''
  beforeAll(async () => {
    const [tenant] = await createTenants(stack().service, 1)
    key = tenant?.project_key ?? ''
  })
  const upstreamUrl = () => stack().description.upstream_url
  beforeEach(() => clearRecords(upstreamUrl()))

  const turn = (model: string, script: Script) =>
    takeTurn({ program, baseUrl: stack().description.base_url, key, model, script })

  function expectFinished(taken: CodexTurn) {
    expect(taken.exitCode, taken.printed).toBe(0)
    expect(taken.events.at(-1)?.type, taken.printed).toBe('turn.completed')
  }
  const messagesIn = (taken: CodexTurn) => itemsOf(taken, 'agent_message').map(({ text }) => text)

  describe.each(models)('with %s', (model, path) => {
    test('a turn ends with the text of the model, after one upstream call', async () => {
      const taken = await turn(model, { text: 'The gate is open.', usage: { output: 77 } })
      expectFinished(taken)
      expect(messagesIn(taken)).toEqual(['The gate is open.'])
      expect(taken.events.at(-1)?.['usage']).toMatchObject({ output_tokens: 77 })
      const requests = await recordedBy(upstreamUrl())
      expect(requests.map((request) => request.path)).toEqual([path])
      expect(requests[0] && toolNamesIn(requests[0])).toContain('exec_command')
      expect(JSON.stringify(requests[0]?.headers)).not.toContain(key)
    })

    test('tools that the model calls are run, and their results reach it', async () => {
      const words = ['first', 'second']
      const toolCalls = words.map((word) => ({
        name: 'exec_command',
        arguments: { cmd: `echo the ${word} of $((1 + 1))` },
      }))
      const taken = await turn(model, { toolCalls })
      expectFinished(taken)
      expect(messagesIn(taken)).toEqual(['Hello from the scripted upstream.'])
      const requests = await recordedBy(upstreamUrl())
      expect(requests.map((request) => request.path)).toEqual([path, path])
      const [, last] = requests
      const { calls, results } = toolHistoryIn(last ?? expect.fail('There is no second request.'))
      expect(new Set(calls).size).toBe(words.length)
      expect(results.map(({ id }) => id)).toEqual(calls)
      // On a machine without a sandbox the commands print an error, which must arrive as well.
      const printed = itemsOf(taken, 'command_execution').map((item) => item.aggregated_output)
      expect(printed).toHaveLength(words.length)
      for (const text of printed) {
        expect(text).toMatch(/\S/)
        expect(results.map((result) => result.text).join('\n')).toContain(text)
      }
    })

    test("a refusal has the upstream's message, and is not retried", async () => {
      const taken = await turn(model, { error: { status: 400, message: 'This prompt is odd.' } })
      expect(taken.exitCode, taken.printed).toBe(1)
      expect(taken.events.at(-1), taken.printed).toMatchObject({
        type: 'turn.failed',
        error: { message: expect.stringContaining('This prompt is odd.') as string },
      })
      expect(await recordedBy(upstreamUrl())).toHaveLength(1)
    })

    test('an answer that fails midway fails its turn, and the next turn succeeds', async () => {
      const errorAfter = { pieces: 5, message: 'It broke.' }
      const broken = await turn(model, { tokens: 20, paceMs: 20, errorAfter })
      expect(broken.exitCode, broken.printed).toBe(1)
      expect(broken.events.at(-1), broken.printed).toMatchObject({
        type: 'turn.failed',
        error: { message: expect.stringContaining('It broke.') as string },
      })
      expectFinished(await turn(model, { text: 'The gate is open.' }))
    })
  })

  test('members and items that Gatehouse does not know reach an upstream of the same format', async () => {
    const taken = await turn(knownName, { text: 'The gate is open.' })
    expectFinished(taken)
    expect(messagesIn(taken)).toEqual(['The gate is open.'])
    const [request] = await recordedBy(upstreamUrl())
    expect(request?.body).toMatchObject({
      model: 'gpt-scripted',
      store: false,
      include: ['reasoning.encrypted_content'],
      reasoning: { context: 'all_turns' },
      text: { verbosity: 'low' },
      client_metadata: { thread_id: request?.body['prompt_cache_key'] },
    })
    const items = request?.body['input'] as unknown[] | undefined
    expect(items?.[0]).toMatchObject({
      type: 'additional_tools',
      tools: expect.arrayContaining([
        expect.objectContaining({ type: 'namespace', tools: expect.any(Array) as unknown[] }),
      ]) as unknown[],
    })
  })

  test('its web search needs a model that allows it, and the refusal says so', async () => {
    const { base_url: baseUrl } = stack().description
    const script = { text: 'The gate is open.' }
    const search = { program, baseUrl, key, script, hasWebSearch: true }
    const refused = await takeTurn({ ...search, model: 'gpt-scripted' })
    expect(refused.exitCode, refused.printed).toBe(1)
    expect(refused.printed).toContain('web_search')
    expect(refused.printed).toContain("to 'allows' of this model")
    expectFinished(await takeTurn({ ...search, model: 'searching' }))
    const [request] = await recordedBy(upstreamUrl())
    expect(JSON.stringify(request?.body)).toContain('"type":"web_search"')
  })

  test('an invalid key fails the turn, and no upstream is called', async () => {
    const baseUrl = stack().description.base_url
    const script = { text: 'The gate is open.' }
    const taken = await takeTurn({ program, baseUrl, key: 'wrong', model: 'gpt-scripted', script })
    expect(taken.exitCode, taken.printed).toBe(1)
    expect(taken.events.at(-1)?.type, taken.printed).toBe('turn.failed')
    expect(taken.printed).toContain('401')
    expect(await recordedBy(upstreamUrl())).toEqual([])
  })
})
