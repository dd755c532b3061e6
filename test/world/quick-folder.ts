/** Where test stores lie: in memory where there is enough of it. What a killed process has written survives there as on a disk. */
import { access, constants, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'

const MEMORY = '/dev/shm'

/** A folder for files of up to so many bytes. */
export async function quickFolder(bytes: number): Promise<string> {
  try {
    const { bavail, bsize } = await statfs(MEMORY)
    await access(MEMORY, constants.W_OK)
    return bavail * bsize > bytes ? MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}
