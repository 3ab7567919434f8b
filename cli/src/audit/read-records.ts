import { hash } from 'node:crypto'

import { isObject, joinMembers, type Json, type JsonObject, memberTexts } from './canonical.ts'
import { bytesFromHex, isSize, textFrom } from './encoding.ts'
import { BadLine, type Place } from './fault.ts'
import type { Line } from './lines.ts'
import { hashLeaf } from './merkle.ts'

/** A record of an event that has been checked as far as it can be checked alone. */
export type EventRecord = {
  kind: 'record'
  place: Place
  organizationId: string
  seq: number
  eventId: string
  createdAt: string
  leaf: Buffer
  isErased: boolean
}

/** A record of a checkpoint, not checked yet. */
export type CheckpointRecord = {
  kind: 'checkpoint'
  place: Place
  organizationId: string
  seq: number
  eventId: string | undefined
  members: JsonObject
}

export type AuditRecord = EventRecord | CheckpointRecord

/** Reads an object as JSON. Other lines are bad. */
export function objectIn({ bytes }: Pick<Line, 'bytes'>): { text: string; object: JsonObject } {
  const text = textFrom(bytes)
  if (text === undefined) throw new BadLine('is not UTF-8')
  const object = parsed(text)
  if (!isObject(object)) throw new BadLine('is not a JSON object')
  return { text, object }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new BadLine('is not JSON')
  }
}

/** Whose record it is, and where it belongs. This much is needed before anything can be checked. */
export function addressOf(object: JsonObject) {
  const { org_id: organizationId, org_seq: seq, event_type: type } = object
  if (typeof organizationId !== 'string' || organizationId === '')
    throw new BadLine('has no org_id')
  if (!isSize(seq)) throw new BadLine('has no org_seq')
  if (typeof type !== 'string') throw new BadLine('has no event_type')
  return {
    organizationId,
    seq,
    kind: type === 'checkpoint' ? ('checkpoint' as const) : ('record' as const),
  }
}

/** `texts` are its members as JSON, where the caller has them already. */
export function recordFrom(object: JsonObject, place: Place, texts?: Texts): AuditRecord {
  const { organizationId, seq, kind } = addressOf(object)
  const { event_id: id } = object
  const eventId = typeof id === 'string' ? id : undefined
  const common = { place, organizationId, seq }
  if (kind === 'checkpoint') return { ...common, kind, eventId, members: object }
  if (eventId === undefined) throw new BadLine('has no event_id')
  if (typeof object['created_at'] !== 'string') throw new BadLine('has no created_at')
  if (object['source'] !== 'policy_gateway') {
    throw new BadLine('has been changed: its source is not policy_gateway')
  }
  const isErased = checkPayload(object)
  const leaf = hashLeaf(leafText(texts ?? textsOf(object)))
  return { ...common, kind, eventId, createdAt: object['created_at'], leaf, isErased }
}

/** The members that the leaf does not cover: one that is always the same, and what can be erased, which it covers by its hash. */
const outsideLeaf = new Set(['source', 'payload', 'payload_salt'])

const leafText = (texts: Texts) => joinMembers(texts.filter(([name]) => !outsideLeaf.has(name)))

/**
 * A record as a bundle has it: canonical JSON, but the payload as it was hashed. Its members are in the order in which the
 * service wrote them, which is not the canonical one.
 */
export const writeRecord = (object: JsonObject): string => joinMembers(textsOf(object))

type Texts = ReturnType<typeof memberTexts>

export function textsOf(object: JsonObject): Texts {
  try {
    return memberTexts(object, { payload: JSON.stringify(object['payload'] ?? null) })
  } catch (error) {
    // Also a stack that is too small for what is nested in it.
    throw new BadLine(`cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const saltBytes = 16

/** Whether the payload was erased; salt and payload go together. */
function checkPayload({ payload, payload_salt, payload_hash }: JsonObject): boolean {
  const expected = bytesFromHex(payload_hash, 32)
  if (!expected) throw new BadLine('has no payload_hash of 64 lower-case hexadecimal digits')
  if (payload === null && payload_salt === null) return true
  const salt = bytesFromHex(payload_salt, saltBytes)
  if (!isObject(payload) || !salt) {
    throw new BadLine('has been changed: payload and payload_salt do not belong together')
  }
  if (!hashPayload(salt, payload).equals(expected)) {
    throw new BadLine('has been changed: its payload does not match payload_hash')
  }
  return false
}

function hashPayload(salt: Buffer, payload: Json): Buffer {
  return hash('sha256', Buffer.concat([salt, Buffer.from(JSON.stringify(payload))]), 'buffer')
}
