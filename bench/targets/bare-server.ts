import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

// The baseline: a Node server that only sends an answer of the same size.
const body = Buffer.from(process.env['BODY'] ?? '{}')
const server = createServer((request, response) => {
  if (request.url === '/cpu') {
    const { user, system } = process.cpuUsage()
    response.end(String(user + system))
    return
  }
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end(body)
})
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
process.on('disconnect', () => process.exit(0))
