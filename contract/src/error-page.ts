import { type Endpoint, errorsOf } from './endpoint.ts'
import { errorCodes, errors } from './error.ts'

/** Prints the catalogue as a page; `doc_url` of an error body points to a heading of it. */
export function toErrorPage(endpoints: readonly Endpoint[]): string {
  const sections = errorCodes.map((code) => {
    const { status, type, meaning } = errors[code]
    const places = endpoints.filter((endpoint) => errorsOf(endpoint).includes(code))
    return [
      `## ${code}`,
      '',
      `${status}, \`${type}\`. ${meaning}`,
      '',
      places.length === 0
        ? 'No endpoint answers it yet, or any route can.'
        : `Answered by ${places.map(({ id }) => `\`${id}\``).join(', ')}.`,
      '',
    ].join('\n')
  })
  return `${[introduction, ...sections].join('\n').trimEnd()}\n`
}

const introduction = `# Errors

Printed from \`contract/src/error.ts\` by \`./dev generate\`. A \`code\` is stable; \`message\` is for people and may change.
Every answer carries its request id in the headers \`x-request-id\` and \`request-id\`: quote it when you report a problem.
`
