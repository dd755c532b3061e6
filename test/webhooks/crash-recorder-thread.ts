/** The thread of a recorder: tells where it listens, and then what it saw as often as it is asked. */
import { parentPort, workerData } from 'node:worker_threads'
import { seededRandom } from '../world/random.ts'
import { RecordingServer } from './crash-recorder.ts'

const server = new RecordingServer(seededRandom(Number(workerData)))
parentPort?.postMessage(await server.listen())
parentPort?.on('message', () => parentPort?.postMessage(server.record()))
