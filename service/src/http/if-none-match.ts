import { hash } from 'node:crypto'

import type { FastifyReply, FastifyRequest } from 'fastify'

/** More tags than any page keeps of one answer. */
const tagsMax = 20

/** Sends an answer's tag, and says whether the caller has the answer already (RFC 9110, 13.1.2). */
export function isKnown({ headers }: FastifyRequest, reply: FastifyReply, text: string): boolean {
  const tag = `"${hash('sha256', text, 'base64url').slice(0, 22)}"`
  void reply.header('etag', tag)
  return matches(headers['if-none-match'], tag)
}

/** Whether a list of tags has this one. Tags that a proxy has made weak count, because only bytes were changed. */
export function matches(sent: string | undefined, tag: string): boolean {
  if (sent === undefined) return false
  const tags = sent.split(',', tagsMax).map((each) => each.trim().replace(/^W\//, ''))
  return tags.includes(tag) || sent.trim() === '*'
}
