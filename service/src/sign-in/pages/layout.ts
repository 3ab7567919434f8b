import { html, type Html } from '#http/pages/html.ts'

type Content = {
  title: string
  body: Html
  /** The path of a script of ours. */
  script?: string
  /** Where the browser goes by itself. */
  goesTo?: string
}

/** A whole page. It works without a script unless it names one, and loads nothing from elsewhere. */
export const layout = ({ title, body, script, goesTo }: Content): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        ${goesTo === undefined ? null : html`<meta http-equiv="refresh" content="0;url=${goesTo}" />`}
        <title>${title} · Gatehouse</title>
        <link rel="stylesheet" href="/auth/style.css" />
        ${script === undefined ? null : html`<script src="${script}" defer></script>`}
      </head>
      <body>
        <main>
          <p class="brand">Gatehouse</p>
          <h1>${title}</h1>
          ${body}
        </main>
      </body>
    </html> `

/** What went wrong, read out by screen readers when the page appears. */
export const warning = (message: string): Html =>
  html`<p class="warning" role="alert">${message}</p>`
