"""The papers that methods come from, in BibTeX."""

from __future__ import annotations

BIBTEX = {
    "abnar2020": """\
@inproceedings{abnar2020,
  title     = {Quantifying Attention Flow in Transformers},
  author    = {Abnar, Samira and Zuidema, Willem},
  booktitle = {Proceedings of ACL},
  pages     = {4190--4197},
  year      = {2020},
  doi       = {10.18653/v1/2020.acl-main.385}
}""",
    "achtibat2024": """\
@inproceedings{achtibat2024,
  title     = {{AttnLRP}: Attention-Aware Layer-Wise Relevance Propagation for Transformers},
  author    = {Achtibat, Reduan and Hatefi, Sayed Mohammad Vakilzadeh and Dreyer, Maximilian and Jain, Aakriti and
               Wiegand, Thomas and Lapuschkin, Sebastian and Samek, Wojciech},
  booktitle = {Proceedings of ICML},
  series    = {PMLR},
  volume    = {235},
  pages     = {135--168},
  year      = {2024},
  eprint    = {2402.05602}
}""",
    "adebayo2018": """\
@misc{adebayo2018,
  title  = {Local Explanation Methods for Deep Neural Networks Lack Sensitivity to Parameter Values},
  author = {Adebayo, Julius and Gilmer, Justin and Goodfellow, Ian and Kim, Been},
  year   = {2018},
  eprint = {1810.03307}
}""",
    "ali2022": """\
@inproceedings{ali2022,
  title     = {{XAI} for Transformers: Better Explanations through Conservative Propagation},
  author    = {Ali, Ameen and Schnake, Thomas and Eberle, Oliver and Montavon, Gr{\\'e}goire and
               M{\\"u}ller, Klaus-Robert and Wolf, Lior},
  booktitle = {Proceedings of ICML},
  series    = {PMLR},
  volume    = {162},
  pages     = {435--451},
  year      = {2022}
}""",
    "arras2025": """\
@misc{arras2025,
  title  = {A Close Look at Decomposition-based {XAI}-Methods for Transformer Language Models},
  author = {Arras, Leila and Puri, Bruno and Kahardipraja, Patrick and Lapuschkin, Sebastian and Samek, Wojciech},
  year   = {2025},
  eprint = {2502.15886}
}""",
    "bahdanau2015": """\
@inproceedings{bahdanau2015,
  title     = {Neural Machine Translation by Jointly Learning to Align and Translate},
  author    = {Bahdanau, Dzmitry and Cho, Kyunghyun and Bengio, Yoshua},
  booktitle = {Proceedings of ICLR},
  year      = {2015},
  eprint    = {1409.0473}
}""",
    "bastings2020": """\
@inproceedings{bastings2020,
  title     = {The Elephant in the Interpretability Room: Why Use Attention as Explanation When We Have Saliency
               Methods?},
  author    = {Bastings, Jasmijn and Filippova, Katja},
  booktitle = {Proceedings of BlackboxNLP},
  pages     = {149--155},
  year      = {2020},
  doi       = {10.18653/v1/2020.blackboxnlp-1.14}
}""",
    "chefer2021": """\
@inproceedings{chefer2021,
  title     = {Generic Attention-Model Explainability for Interpreting Bi-Modal and Encoder-Decoder Transformers},
  author    = {Chefer, Hila and Gur, Shir and Wolf, Lior},
  booktitle = {Proceedings of ICCV},
  pages     = {397--406},
  year      = {2021}
}""",
    "denil2014": """\
@misc{denil2014,
  title  = {Extraction of Salient Sentences from Labelled Documents},
  author = {Denil, Misha and Demiraj, Alban and de Freitas, Nando},
  year   = {2014},
  eprint = {1412.6815}
}""",
    "ding2019": """\
@inproceedings{ding2019,
  title     = {Saliency-driven Word Alignment Interpretation for Neural Machine Translation},
  author    = {Ding, Shuoyang and Xu, Hainan and Koehn, Philipp},
  booktitle = {Proceedings of WMT},
  pages     = {1--12},
  year      = {2019},
  doi       = {10.18653/v1/W19-5201}
}""",
    "erion2021": """\
@article{erion2021,
  title   = {Improving Performance of Deep Learning Models with Axiomatic Attribution Priors and Expected Gradients},
  author  = {Erion, Gabriel and Janizek, Joseph D. and Sturmfels, Pascal and Lundberg, Scott M. and Lee, Su-In},
  journal = {Nature Machine Intelligence},
  volume  = {3},
  pages   = {620--631},
  year    = {2021},
  doi     = {10.1038/s42256-021-00343-w}
}""",
    "ferrando2022a": """\
@inproceedings{ferrando2022a,
  title     = {Measuring the Mixing of Contextual Information in the Transformer},
  author    = {Ferrando, Javier and G{\\'a}llego, Gerard I. and Costa-juss{\\`a}, Marta R.},
  booktitle = {Proceedings of EMNLP},
  pages     = {8698--8714},
  year      = {2022},
  doi       = {10.18653/v1/2022.emnlp-main.595}
}""",
    "ferrando2022b": """\
@inproceedings{ferrando2022b,
  title     = {Towards Opening the Black Box of Neural Machine Translation: Source and Target Interpretations of the
               Transformer},
  author    = {Ferrando, Javier and G{\\'a}llego, Gerard I. and Alastruey, Belen and Escolano, Carlos and
               Costa-juss{\\`a}, Marta R.},
  booktitle = {Proceedings of EMNLP},
  pages     = {8756--8769},
  year      = {2022},
  doi       = {10.18653/v1/2022.emnlp-main.599}
}""",
    "garg2019": """\
@inproceedings{garg2019,
  title     = {Jointly Learning to Align and Translate with Transformer Models},
  author    = {Garg, Sarthak and Peitz, Stephan and Nallasamy, Udhyakumar and Paulik, Matthias},
  booktitle = {Proceedings of EMNLP-IJCNLP},
  pages     = {4453--4462},
  year      = {2019},
  doi       = {10.18653/v1/D19-1453}
}""",
    "kadar2017": """\
@article{kadar2017,
  title   = {Representation of Linguistic Form and Function in Recurrent Neural Networks},
  author  = {K{\\'a}d{\\'a}r, {\\'A}kos and Chrupa{\\l}a, Grzegorz and Alishahi, Afra},
  journal = {Computational Linguistics},
  volume  = {43},
  number  = {4},
  pages   = {761--780},
  year    = {2017},
  doi     = {10.1162/COLI_a_00300}
}""",
    "kobayashi2020": """\
@inproceedings{kobayashi2020,
  title     = {Attention is Not Only a Weight: Analyzing Transformers with Vector Norms},
  author    = {Kobayashi, Goro and Kuribayashi, Tatsuki and Yokoi, Sho and Inui, Kentaro},
  booktitle = {Proceedings of EMNLP},
  pages     = {7057--7075},
  year      = {2020},
  doi       = {10.18653/v1/2020.emnlp-main.574}
}""",
    "li2016": """\
@inproceedings{li2016,
  title     = {Visualizing and Understanding Neural Models in {NLP}},
  author    = {Li, Jiwei and Chen, Xinlei and Hovy, Eduard and Jurafsky, Dan},
  booktitle = {Proceedings of NAACL},
  pages     = {681--691},
  year      = {2016},
  doi       = {10.18653/v1/N16-1082}
}""",
    "li2016erasure": """\
@misc{li2016erasure,
  title  = {Understanding Neural Networks through Representation Erasure},
  author = {Li, Jiwei and Monroe, Will and Jurafsky, Dan},
  year   = {2016},
  eprint = {1612.08220}
}""",
    "li2019": """\
@inproceedings{li2019,
  title     = {On the Word Alignment from Neural Machine Translation},
  author    = {Li, Xintong and Li, Guanlin and Liu, Lemao and Meng, Max and Shi, Shuming},
  booktitle = {Proceedings of ACL},
  pages     = {1293--1303},
  year      = {2019},
  doi       = {10.18653/v1/P19-1124}
}""",
    "selvaraju2017": """\
@inproceedings{selvaraju2017,
  title     = {{Grad-CAM}: Visual Explanations from Deep Networks via Gradient-Based Localization},
  author    = {Selvaraju, Ramprasaath R. and Cogswell, Michael and Das, Abhishek and Vedantam, Ramakrishna and
               Parikh, Devi and Batra, Dhruv},
  booktitle = {Proceedings of ICCV},
  pages     = {618--626},
  year      = {2017}
}""",
    "shrikumar2016": """\
@misc{shrikumar2016,
  title  = {Not Just a Black Box: Learning Important Features Through Propagating Activation Differences},
  author = {Shrikumar, Avanti and Greenside, Peyton and Shcherbina, Anna and Kundaje, Anshul},
  year   = {2016},
  eprint = {1605.01713}
}""",
    "smilkov2017": """\
@misc{smilkov2017,
  title  = {{SmoothGrad}: Removing Noise by Adding Noise},
  author = {Smilkov, Daniel and Thorat, Nikhil and Kim, Been and Vi{\\'e}gas, Fernanda and Wattenberg, Martin},
  year   = {2017},
  eprint = {1706.03825}
}""",
    "sundararajan2017": """\
@inproceedings{sundararajan2017,
  title     = {Axiomatic Attribution for Deep Networks},
  author    = {Sundararajan, Mukund and Taly, Ankur and Yan, Qiqi},
  booktitle = {Proceedings of ICML},
  series    = {PMLR},
  volume    = {70},
  pages     = {3319--3328},
  year      = {2017}
}""",
    "voita2021": """\
@inproceedings{voita2021,
  title     = {Analyzing the Source and Target Contributions to Predictions in Neural Machine Translation},
  author    = {Voita, Elena and Sennrich, Rico and Titov, Ivan},
  booktitle = {Proceedings of ACL},
  pages     = {1126--1140},
  year      = {2021},
  doi       = {10.18653/v1/2021.acl-long.91}
}""",
    "zeiler2014": """\
@inproceedings{zeiler2014,
  title     = {Visualizing and Understanding Convolutional Networks},
  author    = {Zeiler, Matthew D. and Fergus, Rob},
  booktitle = {Proceedings of ECCV},
  pages     = {818--833},
  year      = {2014}
}""",
    "zintgraf2017": """\
@inproceedings{zintgraf2017,
  title     = {Visualizing Deep Neural Network Decisions: Prediction Difference Analysis},
  author    = {Zintgraf, Luisa M. and Cohen, Taco S. and Adel, Tameem and Welling, Max},
  booktitle = {Proceedings of ICLR},
  year      = {2017},
  eprint    = {1702.04595}
}""",
}
