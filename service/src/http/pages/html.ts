/** HTML that is safe to send: made by `html` only. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Piece = string | number | Html | readonly Html[] | null

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Builds HTML from a template; every value is escaped unless it is HTML itself. Attributes must be in quotes. */
export function html(parts: TemplateStringsArray, ...values: readonly Piece[]): Html {
  const text = parts.map((part, index) => part + render(values[index] ?? null)).join('')
  return new Html(text)
}

function render(value: Piece): string {
  if (value === null) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(({ text }) => text).join('')
  return String(value).replaceAll(/[&<>"']/g, (each) => escapes[each] ?? '')
}
