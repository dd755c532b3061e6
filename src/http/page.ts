/** The frame of the pages that the server writes itself: no script, no outside resource. */
import { hash } from 'node:crypto'

const STYLE = `
:root{color-scheme:light dark;--line:#8885;--soft:#8881}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.5rem 0 .25rem}
code,pre{font:14px/1.45 ui-monospace,monospace}
pre{background:var(--soft);padding:.75rem;overflow:auto;border-radius:4px}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2rem .6rem .2rem 0;vertical-align:top}
th{font-weight:600}tr{border-bottom:1px solid var(--line)}
summary{cursor:pointer;padding:.3rem 0}details details{margin-left:1rem}
`

/** Allows the one style above and nothing else. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

export const page = (title: string, body: string): string =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body>${body}</body></html>
`

/** The page at the server's address while the console is not built. */
export const homePage = (version: string): string =>
  page(
    'Bartleby',
    `<main><h1>Bartleby ${escapeHtml(version)}</h1>
<p>The dead letter office for your messages.</p>
<p>The console is not built yet. Build it with <code>npm run build:console</code>, then load this page again.</p>
<ul><li><a href="/docs">API documentation</a></li>
<li><a href="/openapi.json">OpenAPI document</a></li>
<li><a href="/metrics">Metrics</a></li></ul></main>`,
  )
