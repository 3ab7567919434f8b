import type { Endpoint } from '@gatehouse/contract/endpoint'

import { type Arguments, readArguments } from './arguments.ts'
import { type Call, callService, type Wait } from './call.ts'
import type { Command } from './command.ts'
import { flagsOf } from './flags.ts'
import { helpFor } from './help.ts'
import { type Input, inputFrom, naming } from './input.ts'
import { membersOf } from './json-schema.ts'
import { humanForm } from './output.ts'
import { followPages } from './page.ts'
import { baseUrlFrom, type Environment, keyFrom, keyVariableFor } from './settings.ts'
import { UsageError } from './usage-error.ts'
import { fileText, type ReadText } from './value.ts'

/** What a command needs from the machine it runs on. */
export type Machine = {
  environment: Environment
  readText: ReadText
  wait: Wait
  randomKey: () => string
}

/** Runs one command and returns what it prints. */
export async function execute(command: Command, args: readonly string[], machine: Machine) {
  const { endpoint } = command
  const flags = flagsOf(endpoint)
  const given = readArguments(endpoint, flags, args)
  if (given.isOn('help')) return helpFor(command)
  const input = inputFrom(endpoint, flags, given, machine.readText)
  const call = { endpoint, input, ...idempotency(endpoint, given, machine) }
  const answer = await answerTo(call, given, machine)
  return given.isOn('json') ? `${JSON.stringify(answer)}\n` : humanForm(answer)
}

function answerTo(call: Call, given: Arguments, machine: Machine): Promise<unknown> {
  const settings = settingsFor(call.endpoint, given, machine)
  const send = (input: Input) => callService(settings, { ...call, input }, machine.wait)
  if (!given.isOn('all')) return send(call.input)
  // The largest pages: a long list must not use up the caller's requests per minute.
  const query = { limit: largestPage(call.endpoint), ...call.input.query }
  return followPages((after) =>
    send({ ...call.input, query: { ...query, ...(after && { after }) } }),
  )
}

function largestPage({ query }: Endpoint): number | undefined {
  return query && membersOf(query, 'output').schemas['limit']?.maximum
}

function settingsFor({ credentials }: Endpoint, given: Arguments, machine: Machine) {
  const { environment, readText } = machine
  const keyFile = given.text('key-file')
  const keyText =
    keyFile === undefined ? undefined : naming('key-file', () => fileText(keyFile, readText))
  return {
    baseUrl: baseUrlFrom(environment, given.text('url')),
    credential: keyFrom(environment, keyVariableFor(credentials), keyText),
  }
}

/** Every change carries a key, so that a repeated attempt can never become a second change. */
function idempotency({ isIdempotent }: Endpoint, given: Arguments, { randomKey }: Machine) {
  if (!isIdempotent) return {}
  const idempotencyKey = given.text('idempotency-key') ?? randomKey()
  const isSendable = /^[\x20-\x7e]{1,255}$/.test(idempotencyKey) && idempotencyKey.trim() !== ''
  if (!isSendable) throw new UsageError('--idempotency-key takes 1 to 255 ASCII characters.')
  return { idempotencyKey }
}
