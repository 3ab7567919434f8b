export type Place = { file: string; line: number }

/** What is bad. `last` is set where only a range of records is known; the first bad one is in it. */
export type Subject = {
  kind: 'record' | 'checkpoint' | 'header' | 'digest' | 'file' | 'proof'
  /** The number of a record, or the size of a checkpoint; null where it cannot be read. */
  seq: number | null
  last?: number
  eventId?: string | undefined
}

/** The records are not what was signed, or cannot be read. `what` is the end of a sentence about the subject. */
export class Fault extends Error {
  readonly subject: Subject
  readonly place: Place | null

  constructor(subject: Subject, place: Place | null, what: string) {
    super(what)
    this.subject = subject
    this.place = place
  }
}

/** What is wrong with a line, before anybody knows which record should stand there. */
export class BadLine extends Error {}

export function sentenceOf({ subject, place, message }: Fault): string {
  const where = [
    subject.eventId && `event ${subject.eventId}`,
    place && (place.line > 0 ? `${place.file} line ${place.line}` : place.file),
  ].filter(Boolean)
  return `${nameOf(subject)}${where.length > 0 ? ` (${where.join(', ')})` : ''} ${message}.`
}

function nameOf({ kind, seq, last }: Subject): string {
  if (kind === 'header') return 'The first line of the bundle'
  if (kind === 'digest') return 'A digest'
  if (kind === 'file') return 'A file'
  if (kind === 'proof') return 'The proof'
  if (kind === 'checkpoint') return seq === null ? 'A checkpoint' : `The checkpoint of size ${seq}`
  if (seq === null) return 'A record'
  return last === undefined || last === seq
    ? `Record ${seq}`
    : `One of the records ${seq} to ${last}`
}
