/** The part about webhooks in `docs/benchmarks.md`. Sections of it that were not measured stay as they are. */
import { readPart, writePart } from '../page.ts'

const TITLE = 'Webhooks'
const ABOUT = 'Machine and method'

/** Replaces the sections with these titles, or adds them. */
export async function writeWebhooks(
  sections: readonly (readonly [title: string, text: string])[],
  about: string,
): Promise<void> {
  const today = new Date().toISOString().slice(0, 10)
  const kept = new Map(readSections(await readPart(TITLE)))
  kept.delete(ABOUT)
  for (const [title, text] of sections) kept.set(title, `Taken on ${today}.\n\n${text}`)
  kept.set(ABOUT, about)
  const command =
    'Taken with `npm run bench -- webhooks --write`; see [bench/webhooks/README.md](../bench/webhooks/README.md) for what is measured and how.'
  const all = [...kept].map(([title, text]) => `### ${title}\n\n${text}`)
  await writePart(TITLE, [command, ...all].join('\n\n'))
}

function readSections(text: string): [title: string, text: string][] {
  return text
    .split('\n### ')
    .slice(1)
    .map((section) => {
      const end = section.indexOf('\n')
      return [section.slice(0, end), section.slice(end).trim()]
    })
}
