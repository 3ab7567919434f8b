import { findRowByStart, type Row } from './field-table.ts'

/** Values of `anthropic-beta`, by the start of their names. Every format forwards the header. */
export const betaRows: readonly Row[] = [
  {
    class: 'refused',
    feature: 'long_context',
    names: ['context-1m'],
    reason: 'another price for long input',
  },
  { class: 'dropped', names: ['fast-mode'], reason: 'another price' },
  {
    class: 'dropped',
    names: ['server-side-fallback', 'fallback-credit'],
    reason: 'another model than the one that is charged',
  },
  {
    class: 'known',
    reason: 'no price of its own; what it enables is judged as a field or tool',
    names: [
      'advanced-tool-use',
      'cache-diagnosis',
      'claude-code',
      'code-execution',
      'compact',
      'computer-use',
      'context-management',
      'dev-full-thinking',
      'effort',
      'extended-cache-ttl',
      'files-api',
      'fine-grained-tool-streaming',
      'inline-tools',
      'interleaved-thinking',
      'mcp-client',
      'mid-conversation-output-config',
      'mid-conversation-system',
      'mid-conversation-tool-changes',
      'model-context-window-exceeded',
      'output-128k',
      'output-300k',
      'pdfs',
      'prompt-caching',
      'prompt-caching-scope',
      'redact-thinking',
      'skills',
      'structured-outputs',
      'task-budgets',
      'thinking-binding-controls',
      'thinking-display-updates',
      'thinking-token-count',
      'token-counting',
      'token-efficient-tools',
      'tool-examples',
      'tool-search-tool',
      'web-fetch',
      'web-search',
    ],
  },
]

export const findBetaRow = (beta: string): Row | undefined => findRowByStart(betaRows, beta)

const header = 'anthropic-beta'

type Headers = Readonly<Record<string, string>>

/** The betas of a request: a list with commas, in one header. */
export const readBetas = (headers: Headers): string[] =>
  (headers[header] ?? '')
    .split(',')
    .map((beta) => beta.trim())
    .filter((beta) => beta !== '')

/** The headers with these betas instead. */
export function withBetas(headers: Headers, betas: readonly string[]): Record<string, string> {
  const { [header]: _, ...others } = headers
  return betas.length === 0 ? others : { ...others, [header]: betas.join(',') }
}
