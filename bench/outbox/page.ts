/** The part about the outbox in `docs/benchmarks.md`: the last one of the page. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const file = join(import.meta.dirname, '../../docs/benchmarks.md')
const title = '\n## Outbox\n'

/** Replaces the part, or adds it. */
export async function writeOutbox(text: string): Promise<void> {
  const page = await readFile(file, 'utf8')
  const at = page.indexOf(title)
  const others = at < 0 ? page : page.slice(0, at)
  const today = new Date().toISOString().slice(0, 10)
  const taken = `Taken on ${today} with \`npm run bench -- outbox --write\`; see [bench/outbox/README.md](../bench/outbox/README.md) for what is measured and how.`
  await writeFile(file, `${others}${title}\n${taken}\n\n${text}\n`)
}
