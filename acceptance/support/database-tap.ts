import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

// A proxy between one process and PostgreSQL. It understands just enough of the protocol to count the
// statements of a transaction, and ends the process at one of them. The product knows nothing of it.

/** Where the process dies: at the nth statement of its next transaction, `begin` being number 0. */
type Trap = {
  statement: number
  /** Before PostgreSQL gets the statement, or after it has answered but before the process hears it. */
  when: 'before' | 'after'
  kill: () => Promise<unknown>
}

/** The two ends of one connection of the process. */
type Line = { client: Socket; server: Socket; isHeldBack: boolean }

export type DatabaseTap = Awaited<ReturnType<typeof startDatabaseTap>>

export async function startDatabaseTap(databaseUrl: string) {
  const target = new URL(databaseUrl)
  const lines = new Set<Line>()
  const backendPids: number[] = []
  const statements: string[] = []
  let trap: Trap | undefined
  let trapped: Line | undefined
  let isDead = false

  function hangUp() {
    isDead = true
    for (const { client, server } of lines) for (const end of [client, server]) end.destroy()
  }

  /** From here on nothing passes in either direction. */
  function spring({ kill }: Trap) {
    isDead = true
    kill().then(hangUp, hangUp)
  }

  function onStatement(line: Line, text: string) {
    if (!trap) return
    if (!trapped && text.toLowerCase() === 'begin') trapped = line
    if (trapped !== line) return
    statements.push(text)
    const isHere = statements.length - 1 === trap.statement
    if (isHere && trap.when === 'before') spring(trap)
    if (isHere && trap.when === 'after') line.isHeldBack = true
    if (!isHere && /^(commit|rollback)$/i.test(text)) trap = undefined
  }

  function carry(line: Line) {
    const { client, server } = line
    lines.add(line)
    const beginsStatement = findStatements()
    forEachMessage(client, { hasStartup: true }, (message, type) => {
      if (beginsStatement(type)) onStatement(line, textOf(message, type))
      if (!isDead) server.write(message)
    })
    forEachMessage(server, { hasStartup: false }, (message, type) => {
      if (type === 'K') backendPids.push(message.readInt32BE(5))
      if (line.isHeldBack && type === 'Z' && trap && !isDead) spring(trap)
      if (!line.isHeldBack && !isDead) client.write(message)
    })
    const hangUpBoth = () => {
      client.destroy()
      server.destroy()
      lines.delete(line)
    }
    for (const end of [client, server]) end.on('error', hangUpBoth).on('close', hangUpBoth)
  }

  const listener = createServer({ noDelay: true }, (client) => {
    if (isDead) return client.destroy()
    const server = connect({ host: target.hostname, port: Number(target.port || 5432) })
    return carry({ client, server: server.setNoDelay(true), isHeldBack: false })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String((listener.address() as AddressInfo).port)
  return {
    url: url.toString(),
    /** The server processes that served the connections. */
    backendPids: backendPids as readonly number[],
    /** What the transaction has said so far, the statement it died at included. */
    statements: statements as readonly string[],
    arm(next: Trap) {
      trap = next
      trapped = undefined
      statements.length = 0
    },
    stop() {
      hangUp()
      listener.close()
    },
  }
}

type Bytes = Buffer<ArrayBufferLike>

/** Cuts a stream into messages: a type and a length that counts itself. Only the first has no type. */
function forEachMessage(
  stream: Socket,
  { hasStartup }: { hasStartup: boolean },
  take: (message: Bytes, type: string) => void,
) {
  let rest: Bytes = Buffer.alloc(0)
  let typeBytes = hasStartup ? 0 : 1
  stream.on('data', (chunk: Bytes) => {
    rest = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
    while (rest.length >= typeBytes + 4) {
      const length = typeBytes + rest.readInt32BE(typeBytes)
      if (rest.length < length) return
      const message = rest.subarray(0, length)
      rest = rest.subarray(length)
      take(message, typeBytes === 0 ? '' : message.toString('latin1', 0, 1))
      typeBytes = 1
    }
  })
}

/** A statement is one simple query, or everything up to the next Sync. */
function findStatements() {
  let isInside = false
  return (type: string): boolean => {
    const begins = !isInside && 'QPBDECF'.includes(type) && type !== ''
    if (type === 'S' || type === 'Q') isInside = false
    else if (begins) isInside = true
    return begins
  }
}

/** The text of a simple query or of a Parse, where the name of the statement stands first. */
function textOf(message: Bytes, type: string): string {
  const [first = '', second = ''] = message.toString('utf8', 5).split('\0')
  return (type === 'P' ? second : first).trim()
}
