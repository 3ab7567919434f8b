import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'

import { type Arguments, readArguments } from './arguments.ts'
import { type Call, callService, type Wait } from './call.ts'
import { helpFor } from './command-help.ts'
import type { Command } from './command.ts'
import { CommandFailed } from './failure.ts'
import { flagsOf } from './flags.ts'
import { type Input, inputFrom, naming } from './input.ts'
import { membersOf } from './json-schema.ts'
import { humanForm } from './output/human-form.ts'
import { listColumns } from './output/list-columns.ts'
import { followPages } from './page.ts'
import {
  baseUrlFrom,
  type Environment,
  keyFrom,
  keyVariableFor,
  type Settings,
} from './settings.ts'
import { UsageError } from './usage-error.ts'
import { fileText, type ReadText } from './value.ts'

/** What a command needs from the machine it runs on. */
export type Machine = {
  environment: Environment
  readText: ReadText
  wait: Wait
  randomKey: () => string
  /** How many characters a line of the terminal has. */
  width: number
  /** Tells how far a long command is, on the standard error. */
  say: (line: string) => void
}

/** Runs one command and returns its output. */
export async function execute(command: Command, args: readonly string[], machine: Machine) {
  const endpoint = findEndpoint(command)
  const flags = flagsOf(endpoint)
  const given = readArguments(endpoint, flags, args)
  if (given.isOn('help')) return helpFor(command, endpoint)
  const input = inputFrom(endpoint, flags, given, machine.readText)
  refuseStreams(input)
  const call = { endpoint, input, ...idempotency(endpoint, given, machine) }
  const settings = settingsFor(endpoint, given, machine)
  const answer = await send(call, settings, given, machine).catch((error: unknown) => {
    throw new CommandFailed(error, flags)
  })
  if (given.isOn('json')) return `${JSON.stringify(answer)}\n`
  return humanForm(answer, { width: machine.width, columns: listColumns[endpoint.id] })
}

/** This client prints an answer when it is complete. */
function refuseStreams({ body }: Input) {
  if (body?.['stream'] === true)
    throw new UsageError(
      'This client prints whole answers: leave out --stream, or call the service with curl -N.',
    )
}

function findEndpoint({ operationId }: Command): Endpoint {
  const endpoint = endpoints.find(({ id }) => id === operationId)
  if (!endpoint) throw new Error(`The contract has no operation ${operationId}.`)
  return endpoint
}

async function send(
  call: Call,
  settings: Settings,
  given: Arguments,
  { wait }: Machine,
): Promise<unknown> {
  const sendInput = (input: Input) => callService(settings, { ...call, input }, wait)
  if (!given.isOn('all')) return sendInput(call.input)
  // The largest pages: a long list must not use up the caller's requests per minute.
  const query = { limit: largestPage(call.endpoint), ...call.input.query }
  return followPages((after) =>
    sendInput({ ...call.input, query: { ...query, ...(after && { after }) } }),
  )
}

function largestPage({ query }: Endpoint): number | undefined {
  return query && membersOf(query, 'output').schemas['limit']?.maximum
}

function settingsFor({ credentials }: Endpoint, given: Arguments, machine: Machine): Settings {
  const { environment, readText } = machine
  const keyFile = given.text('key-file')
  const keyText =
    keyFile === undefined ? undefined : naming('key-file', () => fileText(keyFile, readText))
  return {
    baseUrl: baseUrlFrom(environment, given.text('url')),
    credential: keyFrom(environment, keyVariableFor(credentials), keyText),
  }
}

/** Every change carries an idempotency key, so that a repeated attempt cannot become a second change. */
function idempotency({ isIdempotent }: Endpoint, given: Arguments, { randomKey }: Machine) {
  if (!isIdempotent) return {}
  const idempotencyKey = given.text('idempotency-key') ?? randomKey()
  const isSendable = /^[\x20-\x7e]{1,255}$/.test(idempotencyKey) && idempotencyKey.trim() !== ''
  if (!isSendable) throw new UsageError('--idempotency-key takes 1 to 255 ASCII characters.')
  return { idempotencyKey }
}
