import { setTimeout as sleep } from 'node:timers/promises'

import { type Answer, beginRaw } from '#support/streams/call.ts'

import { messageOf, type PlannedCall } from './calls.ts'

// Concurrent clients that each send one call after another and log what they received.

/** A call as its client saw it. */
export type ClientCall = {
  organizationId: string
  model: string
  /** From the response headers; null if the connection broke before them. */
  requestId: string | null
  /** 0 if there was no response. */
  status: number
  code: string | null
  isStreamed: boolean
  hungUp: boolean
  isWhole: boolean
  /** The cost and the balance, if the client received them. */
  receipt: { credits: number; remaining: number | null } | null
}

type Load = {
  clients: number
  plan(): PlannedCall
  /** The address of a running process, if there is one. */
  pickProcess(): string | undefined
  isOver(): boolean
}

const pauseMs = 20
/** After a call that was refused or failed. */
const refusedPauseMs = 200
/** Of all clients together, on any machine: the number of calls depends on the duration alone. */
const callsPerSecond = 30

/** Sends calls until `isOver`, then waits for the last answers. */
export async function runLoad({ clients, plan, pickProcess, isOver }: Load) {
  const log: ClientCall[] = []
  const startedAtMs = performance.now()
  let begun = 0
  const waitForTurn = () => {
    const dueAtMs = startedAtMs + (begun++ * 1000) / callsPerSecond
    return sleep(Math.max(0, dueAtMs - performance.now()))
  }
  const runClient = async () => {
    while (!isOver()) {
      await waitForTurn()
      const baseUrl = pickProcess()
      const call = baseUrl === undefined ? undefined : await callOnce(plan(), baseUrl)
      if (call) log.push(call)
      await sleep(call?.status === 200 ? pauseMs : refusedPauseMs)
    }
  }
  await Promise.all(Array.from({ length: clients }, runClient))
  return log
}

async function callOnce(planned: PlannedCall, baseUrl: string): Promise<ClientCall> {
  const { organization, model, isStreamed, hangsUpAtMs } = planned
  const call = beginRaw({ baseUrl, credential: organization.key }, messageOf(planned))
  let hungUp = false
  const timer = setTimeout(() => {
    hungUp = true
    call.hangUp()
  }, hangsUpAtMs ?? 60_000)
  const answer = await call.answer.catch(() => undefined)
  clearTimeout(timer)
  return { organizationId: organization.id, model, isStreamed, hungUp, ...readAnswer(answer) }
}

const numberIn = (text: string, member: string) =>
  new RegExp(`"${member}": ?(\\d+|null)`).exec(text)?.[1]

function readAnswer(answer: Answer | undefined) {
  if (!answer) return { requestId: null, status: 0, code: null, isWhole: false, receipt: null }
  const { status, headers, text, isBroken } = answer
  const credits = numberIn(text, 'estimated_credits_used')
  const remaining = numberIn(text, 'remaining_credits')
  return {
    requestId: headers['x-request-id'] ?? null,
    status,
    isWhole: !isBroken,
    code: /"code": ?"(\w+)"/.exec(text)?.[1] ?? null,
    receipt:
      credits === undefined
        ? null
        : { credits: Number(credits), remaining: toNumber(remaining ?? 'null') },
  }
}

const toNumber = (text: string) => (text === 'null' ? null : Number(text))
