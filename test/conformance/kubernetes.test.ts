import { cannotRun, openKubernetesBackend } from './kubernetes.ts';
import { describeProvider } from './suite.ts';

describeProvider('kubernetes', openKubernetesBackend, cannotRun);
