import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

// A proxy between one process and PostgreSQL. It parses just enough of the protocol to count the statements of a
// transaction, and kills the process at a chosen one. The service contains no code for this.

/** Kills the process at the nth statement of its next transaction; `begin` is statement 0. */
type Trap = {
  statement: number
  /** Before PostgreSQL receives the statement, or after it has answered but before the process gets the answer. */
  when: 'before' | 'after'
  /** null: only the connection of the transaction breaks, and the process goes on. */
  kill: (() => Promise<unknown>) | null
}

/** The two sockets of one proxied connection. */
type Connection = { client: Socket; server: Socket; isHeldBack: boolean }

export type DatabaseTap = Awaited<ReturnType<typeof startDatabaseTap>>

/** `onText` gets the text of every statement, but for those that were prepared under a name before. */
export async function startDatabaseTap(databaseUrl: string, onText?: (text: string) => void) {
  const target = new URL(databaseUrl)
  const connections = new Set<Connection>()
  const backendPids: number[] = []
  let isDead = false

  function hangUp() {
    isDead = true
    for (const { client, server } of connections) for (const end of [client, server]) end.destroy()
  }

  /** Kills the process, and forwards nothing more in either direction. */
  function spring({ kill }: Trap, { client, server }: Connection) {
    if (!kill) {
      client.destroy()
      return void server.destroy()
    }
    isDead = true
    kill().then(hangUp, hangUp)
  }
  const watch = watchTransactions(spring)

  function forward(connection: Connection) {
    const { client, server } = connection
    connections.add(connection)
    const beginsStatement = findStatements()
    forEachMessage(client, { hasStartup: true }, (message, type) => {
      if (beginsStatement(type)) {
        const text = textOf(message, type)
        onText?.(text)
        watch.onStatement(connection, text)
      }
      if (!isDead && !server.destroyed) server.write(message)
    })
    forEachMessage(server, { hasStartup: false }, (message, type) => {
      if (type === 'K') backendPids.push(message.readInt32BE(5))
      if (connection.isHeldBack && type === 'Z' && !isDead) watch.onAnswered(connection)
      if (!connection.isHeldBack && !isDead && !client.destroyed) client.write(message)
    })
    const hangUpBoth = () => {
      client.destroy()
      server.destroy()
      connections.delete(connection)
    }
    for (const end of [client, server]) end.on('error', hangUpBoth).on('close', hangUpBoth)
  }

  const listener = createServer({ noDelay: true }, (client) => {
    if (isDead) return client.destroy()
    const server = connect({ host: target.hostname, port: Number(target.port || 5432) })
    return forward({ client, server: server.setNoDelay(true), isHeldBack: false })
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const { port } = listener.address() as AddressInfo
  return {
    url: atPort(databaseUrl, port),
    /** The process ids of the PostgreSQL backends behind the connections. */
    backendPids: backendPids as readonly number[],
    /** The statements of the transaction so far, including the one at which the process was killed. */
    statements: watch.statements,
    arm: watch.arm,
    stop() {
      hangUp()
      listener.close()
    },
  }
}

/** Follows the first transaction that begins after the trap was armed. */
function watchTransactions(spring: (trap: Trap, connection: Connection) => void) {
  const statements: string[] = []
  let trap: Trap | undefined
  let trapped: Connection | undefined
  function springAt(connection: Connection, sprung: Trap) {
    trap = undefined
    spring(sprung, connection)
  }
  return {
    statements: statements as readonly string[],
    arm(next: Trap) {
      trap = next
      trapped = undefined
      statements.length = 0
    },
    onStatement(connection: Connection, text: string) {
      if (!trap) return
      if (!trapped && text.toLowerCase() === 'begin') trapped = connection
      if (trapped !== connection) return
      statements.push(text)
      const isHere = statements.length - 1 === trap.statement
      if (isHere && trap.when === 'before') springAt(connection, trap)
      else if (isHere) connection.isHeldBack = true
      else if (/^(commit|rollback)$/i.test(text)) trap = undefined
    },
    /** PostgreSQL has answered the statement whose answer is held back. */
    onAnswered(connection: Connection) {
      if (trap) springAt(connection, trap)
    },
  }
}

function atPort(databaseUrl: string, port: number): string {
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  return url.toString()
}

type Bytes = Buffer<ArrayBufferLike>

/** Splits a stream into messages: a type byte and a length that includes itself. The startup message has no type. */
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

/** Recognizes the first message of a statement: a simple query, or everything up to the next Sync. */
function findStatements() {
  let isInside = false
  return (type: string): boolean => {
    const begins = !isInside && 'QPBDECF'.includes(type) && type !== ''
    if (type === 'S' || type === 'Q') isInside = false
    else if (begins) isInside = true
    return begins
  }
}

/** The SQL of a simple query or of a Parse message, which begins with the name of the prepared statement. */
function textOf(message: Bytes, type: string): string {
  const [first = '', second = ''] = message.toString('utf8', 5).split('\0')
  return (type === 'P' ? second : first).trim()
}
