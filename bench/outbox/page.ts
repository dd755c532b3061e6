/** The part about the outbox in `docs/benchmarks.md`. */
import { writePart } from '../page.ts'

/** Replaces the part, or adds it. */
export async function writeOutbox(text: string): Promise<void> {
  const today = new Date().toISOString().slice(0, 10)
  const taken = `Taken on ${today} with \`npm run bench -- outbox --write\`; see [bench/outbox/README.md](../bench/outbox/README.md) for what is measured and how.`
  await writePart('Outbox', `${taken}\n\n${text}`)
}
